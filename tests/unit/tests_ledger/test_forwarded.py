"""What passes between the sub-topologies: completeness, and repeats that faults explain."""

import pytest
from tests.ledger.forwarded import Forwarded, check_complete, check_forwarded
from tests.ledger.stints import Appended, Commit, Disturbance

KILL = Disturbance("kill", 1_000, 1_500)
RUN_MS = 10


def attempt(record_id, count, producer=1, at_ms=None):
    """A record with that id lies at the same offset, and takes its key's count there."""
    at = record_id * RUN_MS if at_ms is None else at_ms
    return [Forwarded(each, record_id, Appended(record_id, producer, at)) for each in (count - 1, count)]


def run(ids, producer=1, begin_ms=0):
    return [f for n, i in enumerate(ids) for f in attempt(i, i + 1, producer, begin_ms + n * RUN_MS)]


def kinds(forwarded, committed, disturbances=()):
    repeats = check_forwarded("by-count-0 of 1", forwarded, [Commit(committed, 900)], disturbances)
    return {anomaly.kind for anomaly in repeats.anomalies}


def test_what_was_forwarded_once_is_complete_and_repeats_nothing():
    forwarded = run(range(50))
    repeats = check_forwarded("by-count-0 of 1", forwarded, [], [])
    assert (repeats.repeated, repeats.results, repeats.stints, repeats.anomalies) == (0, 100, 1, [])
    assert check_complete("by-count", range(50), forwarded) == []


@pytest.mark.parametrize("missing", [0, 1, 40, 99])
def test_one_missing_tag_of_a_record_is_a_loss(missing):
    forwarded = run(range(50))
    del forwarded[missing]
    assert [anomaly.kind for anomaly in check_complete("by-count", range(50), forwarded)] == ["lost"]


def test_two_halves_of_two_attempts_are_no_whole():
    halves = [attempt(7, 3, producer=1)[0], attempt(7, 3, producer=2)[1]]
    assert [anomaly.kind for anomaly in check_complete("by-count", [7], halves)] == ["lost"]


def test_a_half_attempt_before_a_whole_one_is_complete():
    assert check_complete("by-count", [7], [attempt(7, 3)[0], *attempt(7, 4, producer=2)]) == []


def test_a_kill_explains_what_was_not_committed():
    assert kinds(run(range(90)) + run(range(80, 120), 2, 8_000), 80, [KILL]) == set()


def test_a_kill_does_not_explain_what_was_committed():
    assert kinds(run(range(90)) + run(range(79, 120), 2, 8_000), 80, [KILL]) == {"resumed elsewhere"}


def test_no_fault_explains_no_repeat():
    assert kinds(run(range(90)) + run(range(80, 120), 2, 8_000), 80) == {"needless repeat"}


def test_a_record_sent_twice_is_found():
    forwarded = run(range(90))
    forwarded.insert(31, forwarded[30])
    assert kinds(forwarded, 0) == {"needless repeat"}
