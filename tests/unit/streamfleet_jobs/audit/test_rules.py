import msgspec
import pytest

from streamfleet_jobs.audit.facts import HotKey, PartitionFacts
from streamfleet_jobs.audit.first_dirty import FirstDirty
from streamfleet_jobs.audit.log_facts import LogFacts
from streamfleet_jobs.audit.rules import store_findings, topic_findings
from streamfleet_jobs.audit.spec import AuditSpec, StoreSpec, Thresholds, TopicSpec
from streamfleet_jobs.audit.store_facts import StoreFacts
from streamfleet_jobs.kafka.topics import PartitionPin, TopicPin

SPEC = AuditSpec("run", "shop", "shop", "127.0.0.1:9", "out", (), clear_keys=True)
EXACT = FirstDirty("exact", 40, 40, "why")
UNKNOWN = FirstDirty("unknown", 0, 90, "nothing to see")
MIB = 1 << 20


def log(number=0, clean=900, cleanable=100, first_dirty=EXACT, since=None):
    return LogFacts(
        number, 100, clean + cleanable, 3, 90, first_dirty, clean, cleanable, 0, (), since, transactional=False
    )


def keys(number=0, **counts):
    return PartitionFacts(number, **{"records": 100, "keys": 10, "live_keys": 10} | counts)


def facts(*partitions, logs=None, store=None, configs=None, overdue=None):
    """One store whose partitions have these facts."""
    pin = TopicPin("t", {n: PartitionPin(0, 100) for n in range(len(partitions) or 1)}, configs or {})
    logs = {n: log(n) for n in pin.partitions} if logs is None else logs
    store = store or StoreSpec("s", "t", len(pin.partitions))
    return StoreFacts(store, pin, logs, {found.partition: found for found in partitions}, overdue or {})


def found(facts, spec=SPEC):
    return {finding.rule: finding for finding in store_findings(spec, facts)}


def test_a_store_as_it_should_be_has_no_finding():
    assert found(facts(keys(0), keys(1))) == {}


@pytest.mark.parametrize(
    ("dirty", "why", "advice"),
    [
        (log(clean=900, cleanable=100), "the cleaner is not asked yet", "lower min.cleanable.dirty.ratio (now 0.5)"),
        (log(clean=100, cleanable=900), "the cleaner is behind or stuck", "look at the brokers' log cleaner"),
        (
            msgspec.structs.replace(log(first_dirty=UNKNOWN), clean_bytes=None, cleanable_bytes=None),
            "whether the cleaner is asked to is unknown",
            "look at the brokers' log cleaner",
        ),
    ],
    ids=["not asked", "stuck", "unknown"],
)
def test_superseded_bytes_in_closed_segments_are_redundancy_with_their_cause(dirty, why, advice):
    much = keys(closed_bytes=2 * MIB, closed_superseded_bytes=2 * MIB - 1000)
    finding = found(facts(much, logs={0: dirty}))["redundancy"]
    assert why in finding.summary and advice in finding.advice
    assert finding.evidence["first_dirty"]["certainty"] == dirty.first_dirty.certainty
    assert (finding.severity, finding.evidence["threshold"]) == ("warning", 0.5)


@pytest.mark.parametrize(
    ("dirty", "told"),
    [
        (EXACT, "first dirty offset 40, exact"),
        (FirstDirty("bracket", 40, 60, "w"), "first dirty offset between 40 and 60"),
        (UNKNOWN, "first dirty offset unknown: nothing to see"),
        (FirstDirty("irregular", 60, 40, "keys repeat"), "first dirty offset irregular: keys repeat"),
    ],
)
def test_how_sure_the_first_dirty_offset_is_is_said(dirty, told):
    much = keys(closed_bytes=2 * MIB, closed_superseded_bytes=2 * MIB - 1000)
    assert told in found(facts(much, logs={0: log(first_dirty=dirty)}))["redundancy"].summary


def test_little_or_few_superseded_bytes_are_nothing_to_say():
    assert found(facts(keys(closed_bytes=MIB - 1, closed_superseded_bytes=MIB - 1))) == {}
    assert found(facts(keys(closed_bytes=4 * MIB, closed_superseded_bytes=2 * MIB))) == {}


@pytest.mark.parametrize(
    ("found_log", "cause"),
    [
        (log(clean=900, cleanable=100, since=5), "idle"),
        (log(clean=100, cleanable=900, since=5), "stuck"),
        (msgspec.structs.replace(log(first_dirty=UNKNOWN), clean_bytes=None, cleanable_bytes=None), "unknown"),
    ],
    ids=["idle", "stuck", "unknown"],
)
def test_overdue_tombstones_have_a_cause_and_weigh_by_their_number(found_log, cause):
    many = found(facts(keys(), logs={0: found_log}, overdue={0: 1000}))["overdue_tombstones"]
    few = found(facts(keys(), logs={0: found_log}, overdue={0: 999}))["overdue_tombstones"]
    assert (many.severity, few.severity) == ("warning", "info")
    assert many.evidence["cause"] == cause and cause in many.summary
    assert found(facts(keys(), logs={0: found_log}, overdue={0: 0})) == {}


def test_a_log_of_little_but_tombstones_is_said():
    finding = found(facts(keys(0, keys=9000, live_keys=500), keys(1, keys=9000, live_keys=500)))["live_keys"]
    assert finding.summary.startswith("1,000 of 18,000 keys are live (6%)")
    assert finding.severity == "info"
    assert found(facts(keys(0, keys=9000, live_keys=0))) == {}
    assert found(facts(keys(0, keys=20_000, live_keys=2000))) == {}


def test_records_without_key_are_an_error():
    assert found(facts(keys(null_keys=3)))["null_keys"].severity == "error"


def test_one_partitioner_that_explains_all_keys_is_named():
    parts = [keys(n, keys=100, misplaced=80, fits={"murmur2": 20, "crc32": 100, "fnv1a": 15}) for n in range(2)]
    finding = found(facts(*parts))["placement"]
    assert finding.summary == "the keys are spread by crc32, not by murmur2: 160 of 200 are in another partition"
    assert finding.evidence["partitioner"] == "crc32" and finding.partition is None


def test_a_second_writer_with_another_partitioner_is_named_by_the_keys_it_misplaced():
    fits = {"murmur2": 70, "crc32": 40, "fnv1a": 20}
    wrong = {"murmur2": 0, "crc32": 30, "fnv1a": 4}
    parts = [keys(n, keys=100, misplaced=30, fits=fits, misplaced_fits=wrong, misplaced_keys=(b"a",)) for n in (0, 1)]
    findings = store_findings(SPEC, facts(*parts))
    assert [finding.partition for finding in findings] == [0, 1]
    assert (
        "30 keys belong to another partition by murmur2; they are where crc32 puts them: a, ..." in findings[0].summary
    )


def test_a_few_stray_keys_accuse_no_partitioner():
    wrong = {"murmur2": 0, "crc32": 2, "fnv1a": 0}
    part = keys(0, keys=100, misplaced=2, fits={"murmur2": 98}, misplaced_fits=wrong, misplaced_keys=(b"a", b"b"))
    finding = found(facts(part, keys(1, keys=100, fits={"murmur2": 100})))["placement"]
    assert "crc32" not in finding.summary and finding.evidence["partitioner"] == "murmur2"
    assert finding.evidence["keys"] == ["a", "b"]


def test_placement_is_not_judged_where_keys_are_not_the_records_own():
    buffer = StoreSpec("s", "t", 2, checks_placement=False)
    assert found(facts(keys(0, misplaced=9), keys(1), store=buffer)) == {}


def test_keys_are_told_by_their_hash_unless_asked_for():
    part = keys(0, keys=100, misplaced=1, fits={}, misplaced_fits={}, misplaced_keys=(b"anna",))
    hashed = msgspec.structs.replace(SPEC, clear_keys=False)
    assert "anna" in found(facts(part, keys(1)))["placement"].summary
    finding = found(facts(part, keys(1)), hashed)["placement"]
    assert "anna" not in str(msgspec.to_builtins(finding)) and "blake2b:" in finding.summary


def test_the_partition_that_holds_most_is_named_from_keys_or_in_a_quick_audit_from_the_log():
    parts = [keys(n, latest_bytes=size) for n, size in enumerate((10 * MIB, MIB, MIB))]
    assert found(facts(*parts))["skew"].partition == 0
    quick = facts(logs={0: log(0, 0, MIB), 1: log(1, 0, 9 * MIB), 2: log(2, 0, MIB)})
    assert found(quick)["skew"].evidence == {"times": 9.0, "threshold": 4.0}
    assert found(facts(*(keys(n, latest_bytes=4 * MIB) for n in range(3)))) == {}


def test_a_key_that_makes_most_of_a_partition_is_hot():
    hot = keys(records=30_000, hot_keys=(HotKey(b"anna", 20_000),))
    assert "(anna) has 67%" in found(facts(hot))["hot_key"].summary
    assert found(facts(keys(records=100, hot_keys=(HotKey(b"anna", 99),)))) == {}


def test_what_was_not_read_is_unknown_never_fine():
    finding = found(facts(keys(), logs={}))["log_unread"]
    assert finding.is_unknown


def test_a_changelog_must_not_forget_before_its_store():
    windows = StoreSpec("s", "t", 1, retention_ms=1000)
    forgets = {"cleanup.policy": "compact,delete", "retention.ms": "999"}
    assert found(facts(keys(), store=windows, configs=forgets))["retention"].severity == "error"
    assert found(facts(keys(), store=windows, configs=forgets | {"retention.ms": "-1"})) == {}
    assert found(facts(keys(), store=windows, configs=forgets | {"cleanup.policy": "compact"})) == {}


def drift(wanted, pin):
    return [(f.severity, f.summary) for f in topic_findings(SPEC, "s", wanted, pin)]


def test_a_topic_that_is_not_as_it_was_made_has_drifted():
    wanted = TopicSpec("t", 2, {"cleanup.policy": "compact,delete", "segment.bytes": "100"})
    there = {n: PartitionPin(0, 1) for n in range(2)}
    assert drift(wanted, TopicPin("t", there, {"cleanup.policy": "delete, compact", "segment.bytes": "100"})) == []
    assert drift(wanted, TopicPin("t", there, {"cleanup.policy": "delete", "segment.bytes": "7"})) == [
        ("error", "t: cleanup.policy is delete, not compact,delete"),
        ("warning", "t: segment.bytes is 7, not 100"),
    ]
    assert drift(wanted, TopicPin("t", {0: PartitionPin(0, 1)}))[0] == ("error", "t has 1 partitions, not 2")
    assert drift(wanted, TopicPin("t")) == [("error", "topic t does not exist")]


def test_thresholds_are_the_specs():
    spec = msgspec.structs.replace(SPEC, thresholds=Thresholds(skew=20.0, live_keys_of=5, live_keys=0.5))
    parts = [keys(n, latest_bytes=size, live_keys=1) for n, size in enumerate((10 * MIB, MIB, MIB))]
    assert set(found(facts(*parts), spec)) == {"live_keys"}


EVERYTHING_WRONG = facts(
    keys(
        0,
        null_keys=1,
        closed_bytes=2 * MIB,
        closed_superseded_bytes=2 * MIB,
        keys=20_000,
        live_keys=10,
        records=50_000,
        hot_keys=(HotKey(b"hot", 40_000),),
        latest_bytes=2 * MIB,
        misplaced=1,
        misplaced_keys=(b"k",),
    ),
    keys(1),
    keys(2),
    store=StoreSpec("s", "t", 3, retention_ms=10, configs={"segment.bytes": "1"}),
    configs={"cleanup.policy": "compact,delete", "retention.ms": "5", "segment.bytes": "2"},
    logs={0: log(0), 1: log(1)},
    overdue={0: 5_000},
)
ALWAYS = {"config_drift", "retention"}


@pytest.mark.parametrize(
    ("checks", "rules"),
    [
        (("compaction",), {"redundancy", "log_unread"}),
        (("tombstones",), {"overdue_tombstones", "live_keys", "log_unread"}),
        (("placement",), {"placement", "null_keys", "skew", "hot_key"}),
        (("equivalence", "orphans"), set()),
    ],
)
def test_only_the_checks_that_are_asked_for_speak_and_how_a_topic_is_set_up_always_does(checks, rules):
    spec = msgspec.structs.replace(SPEC, checks=checks)
    assert found(EVERYTHING_WRONG, spec).keys() == rules | ALWAYS


def test_all_checks_together_are_all_rules():
    rules = {"redundancy", "log_unread", "overdue_tombstones", "live_keys", "placement", "null_keys", "skew", "hot_key"}
    assert found(EVERYTHING_WRONG).keys() == rules | ALWAYS
