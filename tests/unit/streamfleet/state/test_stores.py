"""Builders: what they accept, and that options change by copy."""

from dataclasses import FrozenInstanceError
from datetime import timedelta

import pytest

from streamfleet import serdes
from streamfleet.errors import OptionError
from streamfleet.records import ValueAndTimestamp
from streamfleet.state.stores import Stores


def test_defaults_are_those_of_kafka_streams():
    builder = Stores.key_value("s")
    assert (builder.kind, builder.caching_enabled, builder.logging_enabled, builder.log_config) == (
        "rocksdb",
        False,
        True,
        {},
    )
    assert not builder.is_windowed
    assert builder.retention_ms is None


def test_durations_are_timedeltas_or_milliseconds():
    builder = Stores.window("s", timedelta(seconds=5), 1000)
    assert (builder.retention_ms, builder.window_size) == (5000, 1000)
    assert builder.is_windowed
    assert Stores.session("s", timedelta(minutes=1)).retention_ms == 60_000


def test_logging_is_a_switch_or_the_settings_of_the_topic():
    assert not Stores.key_value("s", logging=False).logging_enabled
    configured = Stores.key_value("s", logging={"min.insync.replicas": "2"})
    assert configured.logging_enabled
    assert configured.log_config == {"min.insync.replicas": "2"}


def test_options_change_by_copy():
    builder = Stores.key_value("s", key_serde=serdes.long())
    other = (
        builder.with_caching()
        .with_logging(False)
        .with_kind("in_memory")
        .with_serdes(value_serde=serdes.string())
        .with_name("t")
    )
    assert (builder.caching, builder.logging, builder.kind, builder.value_serde, builder.name) == (
        False,
        True,
        "rocksdb",
        None,
        "s",
    )
    assert (other.caching, other.logging, other.kind, other.name) == (True, False, "in_memory", "t")
    assert (other.key_serde, other.value_serde) == (serdes.long(), serdes.string())
    with pytest.raises(FrozenInstanceError):
        builder.name = "other"


def test_timestamped_siblings_keep_everything_else():
    plain = Stores.window("s", 100, 10, kind="in_memory", retain_duplicates=True)
    timed = plain.timestamped()
    assert timed.is_timestamped and not plain.is_timestamped
    assert (timed.retention, timed.window_size, timed.kind, timed.retain_duplicates) == (100, 10, "in_memory", True)
    assert Stores.timestamped_window("s", 100, 10).is_timestamped
    assert Stores.lru("s", 3).timestamped().max_entries == 3


def test_two_builders_are_never_equal():
    assert Stores.key_value("s") != Stores.key_value("s")


def test_every_build_is_a_new_store():
    builder = Stores.key_value("s")
    assert builder.build() is not builder.build()


def test_segments_last_half_the_retention_but_at_least_a_minute():
    assert Stores.window("s", 50, 10).segment_interval_ms == 60_000
    assert Stores.session("s", 10_000_000).segment_interval_ms == 5_000_000
    assert Stores.session("s", 10_000_000, kind="in_memory").segment_interval_ms == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Stores.window("s", 5, 10), "retention of window store s is 5 ms, less than its window size of 10 ms"),
        (lambda: Stores.window("s", 10, 10).with_retention(9), "less than its window size"),
        (lambda: Stores.window("s", -1, 10), "retention of store s must not be negative"),
        (lambda: Stores.window("s", 10, -1), "window_size of store s must not be negative"),
        (lambda: Stores.session("s", -1), "retention of store s must not be negative"),
        (lambda: Stores.lru("s", -1), "max_entries of store s must not be negative"),
        (lambda: Stores.key_value("s", kind="disk"), "store s cannot be of kind 'disk'; use rocksdb or in_memory"),
        (lambda: Stores.key_value(""), "a store's name cannot be empty"),
        (lambda: Stores.key_value(None), "must be text, got None"),
        (lambda: Stores.key_value("s", key_serde=serdes.string), "key_serde of store s is not a serde"),
    ],
)
def test_options_that_cannot_work_are_refused_at_once(make, message):
    with pytest.raises(OptionError, match=message) as raised:
        make()
    assert isinstance(raised.value, ValueError)


def test_the_changelog_of_duplicates_is_not_compacted():
    builder = Stores.window("s", 100, 10, retain_duplicates=True, logging={"min.insync.replicas": "2"})
    assert builder.log_config == {"cleanup.policy": "delete", "min.insync.replicas": "2"}
    assert Stores.window("s", 100, 10).log_config == {}


@pytest.mark.parametrize(
    ("supplier", "timestamp"),
    [
        (Stores.key_value("s"), -1),
        (Stores.key_value("s", kind="in_memory"), 7),
        (Stores.timestamped_key_value("s"), 7),
        (Stores.lru("s", 5), 7),
    ],
)
def test_a_plain_store_on_disk_forgets_the_timestamps_of_a_table(new_task, tmp_path, supplier, timestamp):
    task = new_task(supplier.for_table())
    task.store.put("a", ValueAndTimestamp("1", 7))
    assert task.store.get("a") == ValueAndTimestamp("1", timestamp)
    assert [(r.key, r.value, r.timestamp) for r in task.context.logged] == [(b"a", b"1", 7)]
    other = task.restored(tmp_path / "other")
    assert list(other.store.all()) == [("a", ValueAndTimestamp("1", timestamp))]
    other.close()


def test_a_cache_remembers_a_timestamp_that_the_rows_below_forget(new_task):
    task = new_task(Stores.key_value("s", caching=True).for_table())
    task.store.put("a", ValueAndTimestamp("1", 7))
    task.flush()
    assert task.store.get("a") == ValueAndTimestamp("1", 7)


@pytest.mark.parametrize("builder", [Stores.window("s", 500, 10), Stores.session("s", 500)])
def test_the_changelog_of_a_windowed_store_can_be_kept_for_another_time_than_its_rows(builder):
    assert builder.retention_ms == 500
    changed = builder.with_logged_retention(20)
    assert (changed.retention_ms, changed.retention) == (20, 500)


def test_only_plain_stores_of_duplicates_have_a_changelog_without_compaction():
    plain = Stores.window("s", 500, 10, retain_duplicates=True)
    assert plain.log_config == {"cleanup.policy": "delete"}
    assert plain.timestamped().log_config == {}
