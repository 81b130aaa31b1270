"""From what was judged of a store to the result that the platform takes, and to the page that people read."""

import re
from datetime import UTC, datetime

import msgspec
import pytest

from streamfleet_jobs.audit.facts import BINS, HotKey, PartitionFacts
from streamfleet_jobs.audit.findings import Finding
from streamfleet_jobs.audit.first_dirty import FirstDirty
from streamfleet_jobs.audit.job import JudgedStore
from streamfleet_jobs.audit.log_facts import LogFacts
from streamfleet_jobs.audit.report_html import render
from streamfleet_jobs.audit.result import result_of
from streamfleet_jobs.audit.spec import AuditSpec, StoreSpec
from streamfleet_jobs.audit.store_facts import StoreFacts
from streamfleet_jobs.engines import EngineName
from streamfleet_jobs.kafka.topics import PartitionPin, TopicPin

TIMES = (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 0, 1, tzinfo=UTC))
SPEC = AuditSpec("run-1", "shop <b>", "shop", "127.0.0.1:9", "out", (), clear_keys=True, restore_records_per_second=100)
STORE = StoreSpec("counts", "shop-counts-changelog", 2)
DIRTY = FirstDirty("bracket", 10, 20, "why")


def bins(count):
    return (count,) + (0,) * (BINS - 1)


def keys(number):
    return PartitionFacts(
        number,
        records=1000,
        keys=400,
        live_keys=300,
        total_bytes=10_000,
        latest_bytes=4_000,
        hot_keys=(HotKey(b"<anna>", 90),),
        live_bins=bins(300),
        superseded_bins=bins(600),
        tombstone_bins=bins(100),
    )


def log(number):
    return LogFacts(number, 1000, 5_000_000, 3, 900, DIRTY, 1_000_000, 3_000_000, 0, (), None, transactional=False)


def judged(findings=(), *, with_keys=True, with_logs=True, outcomes=None):
    pin = TopicPin(STORE.changelog, {n: PartitionPin(0, 1000) for n in range(2)})
    logs = {n: log(n) for n in range(2)} if with_logs else {}
    facts = StoreFacts(STORE, pin, logs, {n: keys(n) for n in range(2)} if with_keys else {})
    return JudgedStore(facts, tuple(findings), outcomes or {}, dict.fromkeys(range(2), DIRTY))


def result(store, spec=SPEC):
    return result_of(spec, EngineName.LOCAL, TIMES, [store], store.findings)


def test_a_store_adds_up_to_records_live_keys_and_a_restore_estimate():
    (store,) = result(judged(outcomes={0: "equal", 1: "equal"})).summary["stores"]
    assert (store["records"], store["live_keys"], store["log_bytes"]) == (2000, 600, 10_000_000)
    assert (store["restore_seconds"], store["restore_seconds_if_compacted"]) == (20.0, 8.0)
    assert (store["equivalence"], store["verdict"]) == ("equal", "clean")


def test_an_estimate_without_a_measured_rate_says_so():
    guessed = result(judged(), msgspec.structs.replace(SPEC, restore_records_per_second=None))
    assert guessed.summary["restore_rate"] == "assumed"
    assert "at 150,000 records/s (assumed)" in render(guessed)
    assert "at 100 records/s (measured)" in render(result(judged()))


@pytest.mark.parametrize(
    ("outcomes", "told"),
    [
        ({}, "not compared"),
        ({0: "equal", 1: "equal"}, "equal"),
        ({0: "equal", 1: "unknown"}, "unknown"),
        ({0: "unknown", 1: "differs"}, "differs"),
    ],
)
def test_one_word_for_all_partitions_is_the_worst(outcomes, told):
    assert result(judged(outcomes=outcomes)).summary["stores"][0]["equivalence"] == told


def test_each_partition_is_a_row_with_what_is_known_of_it():
    first, _ = result(judged()).partitions
    assert (first["dirty_ratio"], first["redundancy"], first["first_dirty"]["certainty"]) == (0.75, 0.6, "bracket")
    assert first["hot_keys"] == [{"key": "<anna>", "records": 90}]


def test_what_was_not_read_is_not_a_zero():
    unread = result(judged(with_keys=False, with_logs=False))
    (store,) = unread.summary["stores"]
    assert [store[name] for name in ("records", "live_keys", "log_bytes", "restore_seconds")] == [None] * 4
    assert unread.partitions[0]["records"] is None
    page = render(unread)
    assert page.count("not read") == 2 and "No estimate: nothing was read." in page


def test_an_unknown_finding_keeps_that_in_its_evidence():
    missing = Finding("shop", "t", "equivalence", "info", "not compared", is_unknown=True)
    found = result(judged([missing]))
    assert found.verdict == "unknown"
    assert found.findings[0]["evidence"] == {"unknown": True} and "is_unknown" not in found.findings[0]


def test_a_result_goes_through_json():
    whole = result(judged([Finding("shop", "t", "rule", "error", "what", evidence={"keys": ["a"]})]))
    text = msgspec.json.encode(whole)
    assert msgspec.json.encode(msgspec.json.decode(text, type=type(whole))) == text


def test_the_page_loads_nothing_and_trusts_no_name():
    bad = Finding("shop", "t", "rule", "error", "<script>alert(1)</script>", advice="<i>", store="counts", partition=1)
    page = render(result(judged([bad])))
    assert not re.search(r"<script|<link|src=|@import|url\(", page)
    assert "shop &lt;b&gt;" in page and "&lt;anna&gt;" in page and "&lt;script&gt;alert(1)" in page
    assert "first dirty: 10 to 20 (bracket)" in page and "dirty 75%" in page


def test_errors_come_before_warnings():
    found = [Finding("shop", "t", rule, severity, rule) for rule, severity in (("w", "warning"), ("e", "error"))]
    page = render(result(judged(found)))
    assert page.index("<b>e</b>") < page.index("<b>w</b>")


def test_nothing_found_is_said():
    assert "None: everything that was looked at is as it should be." in render(result(judged()))
