"""Topics that the broker really compacted: what is wrong with them is found, the first dirty offset is the cleaner's own."""

import json
import random

import msgspec
import pytest
from confluent_kafka.admin import ResourceType

from streamfleet_jobs.audit.job import run_audit
from streamfleet_jobs.audit.local_engine import LocalEngine
from streamfleet_jobs.audit.spark_engine import SparkEngine
from streamfleet_jobs.audit.spec import AuditSpec
from streamfleet_jobs.engines import EngineName

MIB = 1 << 20


def spec_of(lab, directory, topic, partitions, **store):
    content = {
        "run_id": directory.name,
        "app": "shop",
        "application_id": "shop",
        "bootstrap_servers": lab.servers,
        "output": str(directory),
        "clear_keys": True,
        "thresholds": {"min_bytes": 10_000, "overdue_tombstones": 100} | store.pop("thresholds", {}),
        "mode": store.pop("mode", "full"),
        "stores": [{"name": "s", "changelog": topic, "partitions": partitions, **store}],
    }
    return msgspec.convert(content, AuditSpec)


@pytest.fixture
def audit(lab, tmp_path):
    count = iter(range(100))

    def run(topic, partitions, engine="local", session=None, **store):
        spec = spec_of(lab, tmp_path / f"audit-{next(count)}", topic, partitions, **store)
        opened = LocalEngine(spec, lambda _: None) if session is None else SparkEngine(spec, session, lambda _: None)
        run_audit(spec, opened, EngineName(engine), lambda _: None)
        return json.loads((spec.directory / "result.json").read_text())

    return run


def updates(count, keys, seed, value=80):
    choose = random.Random(seed)
    return [(b"k%05d" % choose.randrange(keys), choose.randbytes(value)) for _ in range(count)]


def rules(result):
    return {finding["rule"] for finding in result["findings"]}


def compacted_topic(lab, write):
    """A cleaned head, and a dirty tail that the cleaner is not asked to clean."""
    topic = lab.create("compacted", 2, segment_bytes=MIB, min_cleanable_dirty_ratio="0.01")
    write(topic, updates(40_000, 2000, 1))
    lab.until_cleaned(topic, lambda found: len(found) == 2)
    lab.alter(ResourceType.TOPIC, topic, min_cleanable_dirty_ratio="0.99")
    truth = lab.until_cleaned(topic, lambda found: len(found) == 2)
    write(topic, updates(50_000, 2000, 2))
    assert lab.first_dirty(topic) == truth
    return topic, truth


@pytest.mark.parametrize("transactions", [False, True], ids=["plain", "transactions"])
def test_a_tail_that_is_not_compacted_is_found_and_where_it_begins(lab, audit, spark, transactions):
    """Markers of transactions are in the log as well: they are no holes, and no keys."""
    with lab.quick_cleaner():
        topic, truth = compacted_topic(lab, lab.write_in_transactions if transactions else lab.write)
        result = audit(topic, 2)
    first_dirty = {row["partition"]: row["first_dirty"] for row in result["partitions"]}
    assert {number: found["certainty"] for number, found in first_dirty.items()} == {0: "exact", 1: "exact"}
    assert {number: found["low"] for number, found in first_dirty.items()} == truth
    assert rules(result) == {"redundancy"}
    assert all("not asked yet" in f["summary"] and "0.99" in f["advice"] for f in result["findings"])
    assert all(0.5 < row["redundancy"] < 1 for row in result["partitions"])

    on_spark = audit(topic, 2, "spark-local", spark)
    assert on_spark["partitions"] == result["partitions"]
    assert on_spark["findings"] == result["findings"]


def test_tombstones_that_nothing_removes_are_overdue_because_the_topic_is_idle(lab, audit):
    topic = lab.create("tombstones", 1, segment_bytes=MIB, min_cleanable_dirty_ratio="0.01", delete_retention_ms=1)
    with lab.quick_cleaner():
        lab.write(topic, [(b"k%05d" % n, b"x" * 60) for n in range(5000)])
        lab.write(topic, [(b"k%05d" % n, None) for n in range(0, 5000, 2)])
        lab.write(topic, [(b"filler%05d" % n, b"x" * 90) for n in range(11_000)])  # closes the segments
        lab.until_cleaned(topic, lambda found: found.get(0, 0) > 7500)
    result = audit(topic, 1)
    (finding,) = [f for f in result["findings"] if f["rule"] == "overdue_tombstones"]
    assert (finding["evidence"]["cause"], finding["severity"]) == ("idle", "warning")
    assert finding["evidence"]["overdue"] == 2500
    assert "heartbeat" in finding["advice"]


def test_a_topic_whose_keys_are_nearly_all_gone_is_told(lab, audit):
    topic = lab.create("gone", 2)
    lab.write(topic, [(b"k%05d" % n, b"x") for n in range(4000)])
    lab.write(topic, [(b"k%05d" % n, None) for n in range(3900)])
    (finding,) = audit(topic, 2, thresholds={"live_keys_of": 4000})["findings"]
    assert (finding["rule"], finding["severity"]) == ("live_keys", "info")
    assert {name: finding["evidence"][name] for name in ("live", "keys")} == {"live": 100, "keys": 4000}


def test_a_hot_key_and_records_without_key_are_found_where_they_are(lab, audit):
    topic = lab.create("hot", 2, cleanup_policy="delete")  # the broker itself refuses them in a compacted one
    records = [(b"k%05d" % n, b"x") for n in range(2000)]
    lab.write(topic, [*records, *[(b"hot", b"x", 1)] * 3000, *[(None, b"x", 0)] * 7])
    lab.alter(ResourceType.TOPIC, topic, cleanup_policy="compact")
    result = audit(topic, 2, thresholds={"hot_key_records": 3000}, checks_placement=False)
    found = {finding["rule"]: finding for finding in result["findings"] if finding["rule"] != "skew"}
    assert found.keys() == {"hot_key", "null_keys"}
    assert (found["null_keys"]["partition"], found["null_keys"]["evidence"]["records"]) == (0, 7)
    assert (found["hot_key"]["partition"], found["hot_key"]["evidence"]["key"]) == (1, "hot")
    assert 0.7 < found["hot_key"]["evidence"]["share"] < 0.8


def test_a_topic_that_looks_like_the_apps_is_told_and_stays(lab, audit):
    topic = lab.create("used", 1)
    left = f"shop-{topic}-changelog"
    lab.create_exactly(left)
    found = [finding for finding in audit(topic, 1)["findings"] if finding["topic"] == left]
    assert [finding["rule"] for finding in found] == ["orphan_topic"]
    assert left in lab.admin.list_topics(timeout=20).topics
    lab.admin.delete_topics([left])[left].result(20)


def test_a_changelog_that_forgets_before_its_store_is_an_error(lab, audit):
    topic = lab.create("forgets", 1, cleanup_policy="compact,delete", retention_ms=60_000)
    (finding,) = audit(topic, 1, retention_ms=3_600_000)["findings"]
    assert (finding["rule"], finding["severity"], finding["evidence"]) == (
        "retention",
        "error",
        {"found": 60_000, "needed": 3_600_000},
    )
    assert audit(topic, 1, retention_ms=60_000)["findings"] == []


def test_a_foreign_partitioner_is_named(lab, audit):
    topic = lab.create("foreign", 6)
    keys = [(b"customer-%d" % n, b"v") for n in range(600)]
    for name, setting in (("crc32", "consistent"), ("fnv1a", "fnv1a")):
        topic = lab.create("foreign", 6)
        lab.write(topic, keys, partitioner=setting)
        (finding,) = audit(topic, 6)["findings"]
        assert finding["rule"] == "placement" and finding["evidence"]["partitioner"] == name
    topic = lab.create("own", 6)
    lab.write(topic, keys)
    assert audit(topic, 6)["findings"] == []


def test_windowed_keys_are_placed_by_the_key_before_their_window(lab, audit):
    from streamfleet.partitioner import partition_for

    topic = lab.create("windows", 3)
    window = lambda key: key + (60_000).to_bytes(8, "big") + bytes(4)
    keys = [b"k%d" % n for n in range(50)]
    lab.write(topic, [(window(key), b"v", partition_for(key, 3)) for key in keys])
    assert audit(topic, 3, key_format="window")["findings"] == []
    assert rules(audit(topic, 3)) == {"placement"}


def test_skew_and_what_is_missing_are_said(lab, audit):
    topic = lab.create("skewed", 3)
    rows = [(b"k%05d" % n, b"x" * 100, 0) for n in range(5000)] + [(b"a", b"x", 1), (b"b", b"x", 2)]
    lab.write(topic, rows)
    result = audit(topic, 3, checks_placement=False)
    (finding,) = result["findings"]
    assert (finding["rule"], finding["partition"]) == ("skew", 0)
    (gone,) = audit("audit-never-made", 3)["findings"]
    assert gone["rule"] == "config_drift" and "does not exist" in gone["summary"]
    other = audit(topic, 4, checks_placement=False)
    assert "has 3 partitions, not 4" in other["findings"][0]["summary"]


def test_a_quick_audit_reads_headers_alone(lab, audit):
    topic = lab.create("quick", 1)
    lab.write(topic, updates(1000, 10, 3))
    result = audit(topic, 1, mode="quick")
    (row,) = result["partitions"]
    assert row["records"] == 1000 and row["keys"] is None
    assert result["verdict"] == "clean"


def test_an_audit_that_was_cut_off_goes_on_with_what_it_had(lab, tmp_path):
    class Dies(LocalEngine):
        def facts(self, *_):
            raise KeyboardInterrupt

    topic = lab.create("cut", 1)
    lab.write(topic, updates(1000, 10, 3))
    spec = spec_of(lab, tmp_path / "cut", topic, 1)
    with pytest.raises(KeyboardInterrupt):
        run_audit(spec, Dies(spec, lambda _: None), EngineName.LOCAL, lambda _: None)
    [landed] = (tmp_path / "cut").rglob("*.parquet")
    written_at = landed.stat().st_mtime_ns
    lab.write(topic, updates(500, 10, 4))  # later records are none of this run's

    class Watches(LocalEngine):
        def facts(self, *asked):
            assert landed.stat().st_mtime_ns == written_at, "read again"
            return super().facts(*asked)

    run_audit(spec, Watches(spec, lambda _: None), EngineName.LOCAL, lambda _: None)
    (row,) = json.loads((tmp_path / "cut" / "result.json").read_text())["partitions"]
    assert (row["records"], row["end"]) == (1000, 1000)
    assert list((tmp_path / "cut").rglob("*.parquet")) == []  # it holds keys
