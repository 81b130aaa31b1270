"""A running app whose changelogs are tampered with, and one whose are not."""

import msgspec
import pytest
from confluent_kafka.admin import ResourceType
from tests.audit_lab.running_app import PARTITIONS

from streamfleet.partitioner import partition_for
from streamfleet_jobs.audit.spark_engine import SparkEngine

KEYS = 2000


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
def test_a_healthy_app_is_clean_while_it_runs(running_app, guarantee):
    app = running_app(guarantee=guarantee)
    app.keep_writing(keys=300)
    app.until_rows(300)
    for _ in range(4):
        result = app.audit()
        assert result["findings"] == [], result["findings"]
        assert result["verdict"] == "clean"
        assert {store["equivalence"] for store in result["summary"]["stores"]} == {"equal"}


def with_configs(spec, name, configs):
    """The spec, with what the settings of one store's topic should be."""
    stores = (msgspec.structs.replace(store, configs=configs) if store.name == name else store for store in spec.stores)
    return msgspec.structs.replace(spec, stores=tuple(stores))


def test_each_planted_fault_is_found_and_only_those(running_app, lab, spark):
    app = running_app()
    app.write((f"k{n}", f"text {n}") for n in range(KEYS))
    app.until_rows(KEYS)
    topic = app.changelogs["last"]
    here = lambda key: partition_for(key, PARTITIONS)
    changed, lost, intruder, stray = b"k17", b"k1234", b"intruder", b"stray"
    planted = [(changed, b"tampered", here(changed)), (lost, None, here(lost)), (intruder, b"x", here(intruder))]
    lab.write(topic, [*planted, (stray, b"x", 1 - here(stray))])
    lab.alter(ResourceType.TOPIC, topic, min_cleanable_dirty_ratio="0.7", retention_ms=1)
    app.write((f"later{n}", "x") for n in range(20))  # the stores' commits move past what was planted
    app.until_rows(KEYS + 20)
    configs = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.5"}
    result = app.audit(with_configs(app.spec(), "last", configs))
    found = {name: [] for name in ("changed", "missing_in_store", "missing_in_changelog")}
    for finding in result["findings"]:
        for name, keys in found.items():
            keys += finding["evidence"].get(name, [])
    assert {name: sorted(keys) for name, keys in found.items()} == {
        "changed": ["k17"],
        "missing_in_store": ["intruder", "stray"],
        "missing_in_changelog": ["k1234"],
    }
    rules = sorted((f["rule"], f["store"]) for f in result["findings"])
    differing = len({f["partition"] for f in result["findings"] if f["rule"] == "equivalence"})
    assert rules == sorted([("equivalence", "last")] * differing + [("placement", "last"), ("config_drift", "last")])
    (placement,) = (f for f in result["findings"] if f["rule"] == "placement")
    assert placement["evidence"]["keys"] == ["stray"] and placement["partition"] == 1 - here(stray)
    (drift,) = (f for f in result["findings"] if f["rule"] == "config_drift")
    assert drift["evidence"] == {"config": "min.cleanable.dirty.ratio", "expected": "0.5", "found": "0.7"}
    assert result["verdict"] == "errors"

    spec = with_configs(app.spec(), "last", configs)
    on_spark = app.audit(spec, SparkEngine(spec, spark, lambda _: None))
    for part in ("verdict", "findings", "partitions"):
        assert on_spark[part] == result[part]


def test_a_store_that_nobody_shows_is_unknown_not_clean(running_app):
    app = running_app()
    app.write([("a", "x")])
    app.until_rows(1)
    result = app.audit(app.spec(doors=[]))
    assert result["verdict"] == "unknown"
    assert all("no doors are known" in finding["summary"] for finding in result["findings"])
