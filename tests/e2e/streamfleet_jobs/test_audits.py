"""Audits in full: many of a running app, one changed value among 100,000, engines that agree on many logs."""

import sys
import time

import pytest
from tests.audit_lab.agreement import compare_on_random_logs
from tests.audit_lab.running_app import PARTITIONS

from streamfleet.partitioner import partition_for
from streamfleet_jobs.audit.spark_engine import SparkEngine

pytestmark = pytest.mark.timeout(900)

AUDITS = 20
KEYS = 100_000


def test_both_engines_say_the_same_of_many_random_logs(spark, tmp_path_factory):
    compare_on_random_logs(spark, tmp_path_factory.mktemp, examples=25)


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
def test_a_healthy_app_is_clean_in_twenty_audits_while_it_runs(running_app, spark, guarantee):
    """Every seventh on Spark. The app writes all the time, and the broker's cleaner is in a hurry."""
    app = running_app(guarantee=guarantee)
    app.keep_writing(keys=1000, pause_seconds=0.1)
    app.until_rows(1000)
    ends, began = [], time.monotonic()
    with app.lab.quick_cleaner():
        for n in range(AUDITS):
            spec = app.spec()
            result = app.audit(spec, SparkEngine(spec, spark, lambda _: None) if n % 7 == 6 else None)
            assert (result["verdict"], result["findings"]) == ("clean", [])
            assert {store["equivalence"] for store in result["summary"]["stores"]} == {"equal"}
            ends.append(sum(row["end"] for row in result["partitions"]))
    assert ends == sorted(set(ends)), "the app stood still"
    sys.stdout.write(
        f"{guarantee}: {AUDITS} audits in {time.monotonic() - began:.0f} s, {ends[-1]:,} records at the end\n"
    )


def test_one_changed_value_among_a_hundred_thousand_is_named(running_app, spark, lab):
    app = running_app()
    app.write((f"k{n}", f"text {n}") for n in range(KEYS))
    app.until_rows(KEYS)
    changed = b"k54321"
    lab.write(app.changelogs["last"], [(changed, b"tampered", partition_for(changed, PARTITIONS))])
    app.write((f"later{n}", "x") for n in range(20))  # the stores' commits move past what was planted
    app.until_rows(KEYS + 20)
    spec = app.spec()
    for engine in (None, SparkEngine(spec, spark, lambda _: None)):
        result = app.audit(spec if engine else None, engine)
        (finding,) = result["findings"]
        assert (finding["rule"], finding["severity"], finding["store"]) == ("equivalence", "error", "last")
        assert finding["evidence"]["changed"] == ["k54321"]
        assert finding["evidence"]["missing_in_store"] == finding["evidence"]["missing_in_changelog"] == []
