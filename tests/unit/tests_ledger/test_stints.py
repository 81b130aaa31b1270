"""Which repeats of at-least-once are explained, and that the others are named."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ledger.stints import MOST_UNCOMMITTED_MS, Appended, Commit, Disturbance, check_repeats, stints_of

STEP_MS = 10
COMMIT_EVERY = 10
"""Records: a commit interval of 100 ms."""


def work(producer_id, offsets, begin_ms):
    return [Appended(offset, producer_id, begin_ms + n * STEP_MS) for n, offset in enumerate(offsets)]


def commits_of(results):
    """After every tenth result, a moment later."""
    return [Commit(r.input_offset + 1, r.at_ms + 1) for r in results if (r.input_offset + 1) % COMMIT_EVERY == 0]


def kinds(appended, commits, disturbances=()):
    in_time = sorted(appended, key=lambda one: one.at_ms)
    history = sorted(commits, key=lambda one: one.at_ms)
    return {anomaly.kind for anomaly in check_repeats("echo-0", in_time, history, disturbances).anomalies}


KILL = Disturbance("kill", 1_060, 1_500)
BEFORE = work(1, range(107), 0)
"""Killed after 107 records, 100 of them committed."""


def taken_over_from(offset, at_ms=8_000):
    return work(2, range(offset, 200), at_ms)


def test_a_run_without_faults_has_no_repeats():
    results = work(1, range(200), 0)
    repeats = check_repeats("echo-0", results, commits_of(results), [])
    assert (repeats.repeated, repeats.stints, repeats.anomalies) == (0, 1, [])
    assert repeats.longest_uncommitted_ms == (COMMIT_EVERY - 1) * STEP_MS


def test_a_kill_explains_the_records_since_the_last_commit():
    after = taken_over_from(100)
    repeats = check_repeats("echo-0", BEFORE + after, commits_of(BEFORE) + commits_of(after), [KILL])
    assert (repeats.repeated, repeats.stints, repeats.anomalies) == (7, 2, [])


@pytest.mark.parametrize("offset", [0, 90, 99, 101])
def test_a_kill_explains_no_other_beginning_than_the_committed_offset(offset):
    after = taken_over_from(offset, at_ms=20_000)
    assert kinds(BEFORE + after, commits_of(BEFORE) + commits_of(after)[10:], [KILL]) == {"resumed elsewhere"}


def test_a_repeat_without_a_fault_is_needless():
    after = taken_over_from(100)
    assert kinds(BEFORE + after, commits_of(BEFORE) + commits_of(after)) == {"needless repeat"}


def test_a_worker_that_leaves_explains_no_repeat():
    after = taken_over_from(100)
    leave = Disturbance("leave", 1_060, 1_500)
    assert kinds(BEFORE + after, commits_of(BEFORE) + commits_of(after), [leave]) == {"needless repeat"}


def test_a_fault_long_before_explains_nothing():
    after = taken_over_from(100)
    earlier = Disturbance("kill", -30_000, -29_000)
    assert kinds(BEFORE + after, commits_of(BEFORE) + commits_of(after), [earlier]) == {"needless repeat"}


def test_offsets_that_are_never_committed_are_found_without_any_fault():
    assert kinds(work(1, range(MOST_UNCOMMITTED_MS // STEP_MS + 2), 0), []) == {"commit overdue"}


def test_commits_may_wait_while_the_broker_is_away():
    results = work(1, range(100), 0) + work(1, range(100, 200), 9_000)
    away = Disturbance("broker", 995, 8_000)
    assert kinds(results, commits_of(results[100:]), [away]) == set()


def test_what_a_zombie_still_appends_is_explained_by_its_pause():
    before, late = work(1, range(107), 0), work(1, range(107, 112), 9_500)
    after = work(2, range(100, 200), 7_500)
    pause = Disturbance("pause", 1_065, 9_400)
    assert kinds(before + late + after, commits_of(before) + commits_of(after), [pause]) == set()


def test_an_offset_that_goes_back_is_found():
    results = work(1, range(50), 0)
    assert "commit went back" in kinds(results, [*commits_of(results), Commit(20, 600)])


def test_stints_of_two_producers_are_told_apart():
    mixed = [Appended(0, 1, 0), Appended(0, 2, 1), Appended(1, 1, 2), Appended(1, 2, 3), Appended(5, 1, 4)]
    assert [(s.producer_id, s.first, s.end) for s in stints_of(mixed)] == [(1, 0, 2), (2, 0, 2), (1, 5, 6)]


@given(st.integers(1, 199), st.integers(0, 60), st.booleans())
def test_every_kill_is_explained_if_and_only_if_the_work_goes_on_at_the_commit(killed_after, back, skips):
    before = work(1, range(killed_after), 0)
    history = commits_of(before)
    committed = history[-1].offset if history else 0
    begin = committed + back if skips else max(0, committed - back)
    kill = Disturbance("kill", before[-1].at_ms + 1, before[-1].at_ms + 500)
    after = work(2, range(begin, 300), before[-1].at_ms + 6_500)
    found = kinds(before + after, history + [c for c in commits_of(after) if c.offset > committed], [kill])
    assert found == (set() if begin == committed else {"resumed elsewhere"})
