import dataclasses
from datetime import timedelta
from pathlib import Path

import pytest

import streamfleet as sf
from streamfleet.config_streams_group import REFUSED
from streamfleet.config_values import NOT_HERE


def config(**settings):
    return sf.StreamsConfig.from_mapping(
        {"application.id": "app"} | {k.replace("_", "."): v for k, v in settings.items()}
    )


def test_text_values_are_parsed():
    chosen = config(max_task_idle_ms="250", changelog_deduplicate="false", state_dir="/x/y")
    assert chosen.max_task_idle_ms == 250
    assert chosen.changelog_deduplicate is False
    assert chosen.state_dir == Path("/x/y")


def test_durations_may_be_timedeltas():
    assert config(max_task_idle_ms=timedelta(seconds=2)).max_task_idle_ms == 2000


def test_defaults_are_those_of_kafka_streams():
    chosen = config()
    assert chosen.statestore_cache_max_bytes == 10 * 1024 * 1024
    assert chosen.max_task_idle_ms == 0
    assert chosen.windowstore_changelog_additional_retention_ms == 86_400_000


def test_topic_settings_are_collected():
    assert config(topic_segment_bytes="1000").topic_overrides == {"segment.bytes": "1000"}


def test_tags_are_collected_and_those_that_count_may_be_written_as_one_text():
    chosen = config(client_tag_zone="a", client_tag_cluster="1", rack_aware_assignment_tags="zone, cluster")
    assert chosen.client_tags == {"zone": "a", "cluster": "1"}
    assert chosen.rack_aware_assignment_tags == ("zone", "cluster")


@pytest.mark.parametrize("address", ["host:80", "10.0.0.1:65535", "[::1]:9"])
def test_an_application_server_is_a_host_and_a_port(address):
    assert config(application_server=address).application_server == address


def test_a_copy_changes_one_setting_only():
    before = config()
    after = before.with_(max_task_idle_ms=5)
    assert (before.max_task_idle_ms, after.max_task_idle_ms) == (0, 5)
    assert after.application_id == "app"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_task_idle_ms": "soon"}, "setting max.task.idle.ms cannot be 'soon'"),
        ({"max_task_idle_ms": -2}, "expected at least -1"),
        ({"statestore_cache_max_bytes": -1}, "expected at least 0"),
        ({"dsl_store_suppliers_class": "disk"}, "expected rocksdb or in_memory"),
        ({"changelog_deduplicate": "maybe"}, "expected true or false"),
        ({"default_key_serde": "string"}, "expected a serde such as"),
        ({"processing_exception_handler": "ignore"}, "expected fail or continue"),
        ({"default_timestamp_extractor": 5}, "expected a TimestampExtractor"),
        ({"probing_rebalance_interval_ms": 59_999}, "expected at least 60000"),
        ({"max_warmup_replicas": 0}, "expected at least 1"),
        ({"application_server": "host"}, "expected host:port"),
        ({"application_server": "::1:80"}, "expected host:port"),
        ({"application_server": "host:0"}, "expected a port from 1 to 65535"),
        ({"task_assignor_class": "fair"}, "expected high_availability, sticky or module:attribute"),
        ({"task_assignor_class": 5}, "an object with assign"),
        ({"client_tag_zone": ""}, "setting client.tag. cannot be .*at most 20 and values of at most 30"),
        ({"client_tag_zone": "x" * 31}, "at most 30"),
        ({f"client_tag_{name}": 1 for name in "abcdef"}, "expected at most 5 tags"),
        ({"rack_aware_assignment_tags": "a,a"}, "each once"),
        ({"rack_aware_assignment_tags": "zone", "client_tag_rack": "1"}, "this process has no such tag"),
    ],
)
def test_a_wrong_value_names_the_setting_and_what_it_may_be(settings, message):
    with pytest.raises(sf.ConfigError, match=message):
        config(**settings)


def test_a_misspelt_setting_gets_a_suggestion():
    with pytest.raises(sf.ConfigError, match="did you mean max.task.idle.ms"):
        config(max_task_idel_ms=1)


@pytest.mark.parametrize("settings", [{}, {"application.id": ""}])
def test_the_application_id_is_required(settings):
    with pytest.raises(sf.ConfigError, match="application.id is"):
        sf.StreamsConfig.from_mapping(settings)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("group.instance.id", "slot-0"),
        ("task.assignor.class", "sticky"),
        ("acceptable.recovery.lag", 5),
        ("max.warmup.replicas", 3),
        ("probing.rebalance.interval.ms", 60_000),
        ("rack.aware.assignment.strategy", "min_traffic"),
        ("session.timeout.ms", 10_000),
        ("heartbeat.interval.ms", 100),
    ],
)
def test_what_a_broker_that_plans_would_ignore_is_refused(setting, value):
    chosen = {"application.id": "app", setting: value}
    sf.StreamsConfig.from_mapping(chosen)
    with pytest.raises(sf.ConfigError, match=f"{setting} cannot be .* with group.protocol=streams: .*classic"):
        sf.StreamsConfig.from_mapping({**chosen, "group.protocol": "streams"})


def test_every_setting_that_streams_groups_refuse_is_one():
    names = {entry.name for entry in dataclasses.fields(sf.StreamsConfig)}
    assert REFUSED.keys() <= names
    assert sf.StreamsConfig(application_id="app", group_protocol="streams").group_protocol == "streams"


def test_epochs_of_stores_are_read_from_text_and_checked():
    settings = {"application.id": "app", "store.epochs": "by-customer:2, totals:1"}
    assert sf.StreamsConfig.from_mapping(settings).store_epochs == {"by-customer": 2, "totals": 1}
    assert sf.StreamsConfig(application_id="app").store_epochs == {}
    for wrong in ("totals", "totals:-1", ":1", "totals:x"):
        with pytest.raises(sf.ConfigError, match=r"store\.epochs"):
            sf.StreamsConfig.from_mapping(settings | {"store.epochs": wrong})


def test_a_transaction_must_be_able_to_last_for_a_commit_interval():
    settings = {"processing_guarantee": "exactly_once_v2", "transaction_timeout_ms": 20_000}
    assert config(**settings, commit_interval_ms=19_999).effective_commit_interval_ms == 19_999
    with pytest.raises(sf.ConfigError, match=r"commit.interval.ms is 20000 and transaction.timeout.ms 20000"):
        config(**settings, commit_interval_ms=20_000)
    with pytest.raises(sf.ConfigError, match="would abort every transaction"):
        config(**settings).with_(commit_interval_ms=30_000)
    assert config(commit_interval_ms=30_000).transaction_timeout_ms == 10_000  # at least once has no transactions


@pytest.mark.parametrize("name", NOT_HERE)
def test_what_kafka_streams_has_and_we_do_not_is_refused_with_the_reason(name):
    with pytest.raises(sf.ConfigError) as caught:
        sf.StreamsConfig.from_mapping({"application.id": "app", name: "false"})
    assert str(caught.value) == f"setting {name} cannot be set: {NOT_HERE[name]}; leave it out"


def test_the_page_names_what_is_not_here():
    page = (Path(__file__).parents[3] / "docs" / "configuration.md").read_text()
    assert all(f"`{name}`" in page for name in NOT_HERE)
