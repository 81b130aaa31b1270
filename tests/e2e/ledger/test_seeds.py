"""Ten seeded schedules with the full load; the other guarantee, standbys, groups that the broker plans, and broker deaths."""

import re

import pytest
from tests.ledger.app import OUTPUTS, output_topic
from tests.ledger.bench import APPLICATION, REPARTITION
from tests.ledger.oracle import Anomaly
from tests.ledger.run import run_schedule, summary
from tests.ledger.state_check import changelog_topic
from tests.ledger.variants import Variant
from tests.ledger.workload import LedgerSpec

SECONDS = 90


def played(spec, guarantee, directory, **options):
    """A run in which the broker is proven to have left a transaction without markers says nothing: it is run once more."""
    outcome = run_schedule(spec, SECONDS, guarantee, print, directory=directory / "first", **options)
    if outcome.anomalies and outcome.broker_defects:
        told = "\n".join(outcome.broker_defects)
        print(f"run again, the broker is at fault:\n{told}")
        outcome = run_schedule(spec, SECONDS, guarantee, print, directory=directory / "second", **options)
    return outcome


MISSING = {"lost", "closed form", "old state", "stuck", "no clean end"}
"""What it looks like when the rest of a partition is hidden: something is not there, or is waited for. Nothing comes twice or wrong."""


def anomalies_of(spec, guarantee, directory, **options):
    """A run in which the broker is proven to have left a transaction without markers says nothing about what that hides, and only
    about that: anything else counts, and without anything else the run is repeated.
    """
    outcome = run_schedule(spec, SECONDS, guarantee, print, directory=directory / "first", **options)
    if not outcome.anomalies or not outcome.broker_defects:
        return summary(outcome.anomalies)
    told = "\n".join(outcome.broker_defects)
    hidden = [defect.partition(":")[0] for defect in outcome.broker_defects]
    if others := [anomaly for anomaly in outcome.anomalies if not is_explained(anomaly, hidden)]:
        print(f"the broker is at fault, but not for all of it:\n{told}")
        return summary(others)
    print(f"run again, the broker is at fault:\n{told}")
    outcome = run_schedule(spec, SECONDS, guarantee, print, directory=directory / "second", **options)
    return summary(outcome.anomalies)


def is_explained(anomaly, hidden):
    """Whether it follows from the ends of these partitions being hidden. Of an output nothing follows but gaps in that output; what
    the app itself reads, it waits for, and everything behind it is missing.
    """
    if anomaly.kind == "hanging transaction":
        return anomaly.where in hidden
    topics = {partition.rpartition("-")[0] for partition in hidden}
    if anomaly.kind == "store differs from changelog":
        worker, task, store = anomaly.where.split("/")
        return f"{changelog_topic(APPLICATION, store)}-{task.rpartition('_')[2]}" in hidden
    outputs = {output_topic(name): name for name in OUTPUTS}
    if anomaly.kind not in MISSING:
        return False
    return not topics <= outputs.keys() or any(_is_about(anomaly, outputs[topic]) for topic in topics)


def _is_about(anomaly, output):
    return re.match(rf"{output}(\[|-\d| of |$)", anomaly.where) is not None


REPARTITION_TAIL, OUTPUT_TAIL, CHANGELOG_TAIL = f"{REPARTITION}-1", f"{output_topic('min')}-2", "ledger-sum-changelog-3"


@pytest.mark.parametrize(
    ("kind", "where", "hidden", "explained"),
    [
        ("hanging transaction", OUTPUT_TAIL, OUTPUT_TAIL, True),
        ("hanging transaction", f"{output_topic('min')}-1", OUTPUT_TAIL, False),
        ("lost", "min[k1]", OUTPUT_TAIL, True),
        ("closed form", "min of k1", OUTPUT_TAIL, True),
        ("lost", "max[k1]", OUTPUT_TAIL, False),
        ("stuck", "the app", OUTPUT_TAIL, False),
        ("stuck", "the app", REPARTITION_TAIL, True),
        ("lost", "tagg[3]", REPARTITION_TAIL, True),
        ("duplicate", "tagg[3]", REPARTITION_TAIL, False),
        ("duplicate", "min[k1]", OUTPUT_TAIL, False),
        ("two owners", CHANGELOG_TAIL, CHANGELOG_TAIL, False),
        ("worker died", "the app", REPARTITION_TAIL, False),
        ("store differs from changelog", "worker-1/0_3/sum", CHANGELOG_TAIL, True),
        ("store differs from changelog", "worker-1/0_2/sum", CHANGELOG_TAIL, False),
        ("store differs from changelog", "worker-1/0_3/max", CHANGELOG_TAIL, False),
    ],
)
def test_a_defect_of_the_broker_excuses_what_it_hides_and_nothing_else(kind, where, hidden, explained):
    assert is_explained(Anomaly(kind, where, ""), [hidden]) is explained


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(1, 11))
def test_exactly_once_under_a_seeded_schedule(seed, tmp_path):
    assert anomalies_of(LedgerSpec(seed), "exactly_once_v2", tmp_path) == []


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [21, 22])
def test_at_least_once_loses_nothing_and_repeats_no_more_than_the_faults_explain(seed, tmp_path):
    assert anomalies_of(LedgerSpec(seed), "at_least_once", tmp_path) == []


@pytest.mark.timeout(900)
def test_at_least_once_with_standbys_warm_ups_and_probing(tmp_path):
    check_with_standbys(33, "at_least_once", tmp_path)


@pytest.mark.timeout(900)
def test_at_least_once_in_a_group_that_the_broker_plans(tmp_path):
    """A worker stands still while it has results in hand."""
    assert anomalies_of(LedgerSpec(42), "at_least_once", tmp_path, variant=Variant(protocol="streams")) == []


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [31, 32])
def test_exactly_once_with_standbys_warm_ups_and_probing(seed, tmp_path):
    check_with_standbys(seed, "exactly_once_v2", tmp_path)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [31, 32])
def test_exactly_once_in_a_group_that_the_broker_plans(seed, tmp_path):
    variant = Variant(protocol="streams")
    assert anomalies_of(LedgerSpec(seed), "exactly_once_v2", tmp_path, variant=variant) == []


@pytest.mark.timeout(900)
def test_exactly_once_when_the_broker_dies_again_and_again_while_tasks_move(tmp_path):
    assert anomalies_of(LedgerSpec(102), "exactly_once_v2", tmp_path, kinds=("kill", "broker")) == []
