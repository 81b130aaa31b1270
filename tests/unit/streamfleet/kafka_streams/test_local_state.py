"""What a KafkaStreams client deletes of its local state: at the start what is too old, later what has gone elsewhere."""

import os
from types import SimpleNamespace

import pytest
import structlog

import streamfleet as sf
from streamfleet.kafka_streams.client import CLEANING_INTERVAL_MS
from streamfleet.state.state_inventory import StateInventory
from streamfleet.testing import ManualClock

ONE = "aa" * 8
DAY_MS = 86_400_000
NOW_MS = 100 * DAY_MS


@pytest.fixture
def client(tmp_path):
    def make(**settings):
        builder = sf.StreamsBuilder()
        builder.stream("in").to("out")
        config = sf.StreamsConfig(application_id="app", state_dir=tmp_path, **settings)
        return sf.KafkaStreams(builder.build(), config, clock=ManualClock(NOW_MS))

    return make


def make_task(client, partition, age_ms):
    path = client._directory.task_directory(ONE, partition)
    path.mkdir(parents=True)
    used_at = (NOW_MS - age_ms) / 1000
    os.utime(path, (used_at, used_at))
    return path


def start_in_vain(client):
    with pytest.raises(sf.ConfigError, match=r"bootstrap\.servers"):
        client.start()  # which is found after the local state was looked at


def test_state_of_any_age_is_kept_unless_there_is_a_limit(client):
    app = client()
    old = make_task(app, 0, age_ms=99 * DAY_MS)
    start_in_vain(app)
    assert old.exists()


def test_state_that_is_older_than_the_limit_is_deleted_at_the_start_before_anything_else(client):
    app = client(state_cleanup_dir_max_age_ms=DAY_MS)
    old, young = make_task(app, 0, age_ms=DAY_MS + 1), make_task(app, 1, age_ms=DAY_MS)
    with structlog.testing.capture_logs() as lines:
        start_in_vain(app)
    assert not old.exists() and young.exists()
    assert [line["tasks"] for line in lines if line["log_level"] == "warning"] == [[old.name]]


def test_cleaned_state_is_no_longer_offered_to_the_group_also_what_was_set_aside(client):
    app = client(state_cleanup_delay_ms=1000)
    app._factory = SimpleNamespace(inventory=StateInventory())
    for partition, age_ms in enumerate((0, 1000, 1000)):
        make_task(app, partition, age_ms)
        app._factory.inventory.note((ONE, partition), 7)
    app._directory.set_task_aside(ONE, 2)
    app._on_step()
    assert app._factory.inventory.offset_sums() == {(ONE, 0): 7, (ONE, 2): 7}
    assert [path.name for path in app._directory.path.iterdir()] == [f"{ONE}_0"]
    app._clock.advance(CLEANING_INTERVAL_MS)
    app._on_step()
    assert app._factory.inventory.offset_sums() == {(ONE, 2): 7}
