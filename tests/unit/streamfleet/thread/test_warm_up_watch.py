"""When a member asks for a rebalance because of its warm-ups."""

import itertools
from types import SimpleNamespace

import pytest

import streamfleet as sf
from streamfleet.ids import TaskId
from streamfleet.thread.stream_thread import StreamThread
from streamfleet.thread.warm_up_watch import FIRST_PAUSE_MS, TOGETHER_MS, WarmUpWatch


def warm(*partitions, lag=0, has=1000, on_their_way=()):
    """Warm-ups that are so far behind, with so much of their changelogs, and others that have far to go."""
    lags = dict.fromkeys(map(task, partitions), lag) | dict.fromkeys(map(task, on_their_way), 10**6)
    return SimpleNamespace(
        warm_ups=frozenset(lags),
        warm=lambda acceptable: {task_id: has for task_id, lag in lags.items() if lag <= acceptable},
    )


def task(partition):
    return TaskId(0, partition)


@pytest.fixture
def watch():
    return WarmUpWatch(sf.StreamsConfig(application_id="app", acceptable_recovery_lag=100))


def test_it_asks_once_for_every_plan(watch):
    assert not watch.is_due(warm(0, lag=101), 0)
    assert watch.is_due(warm(0, lag=100), 0)
    assert not watch.is_due(warm(0), 10**9)
    watch.on_plan()
    assert watch.is_due(warm(1), 0)


def test_without_warm_ups_there_is_nothing_to_ask_for(watch):
    assert not watch.is_due(warm(), 0)


def test_the_same_warm_ups_are_asked_for_less_and_less_often(watch):
    asked, now_ms = [], 0
    while now_ms < 40 * FIRST_PAUSE_MS:
        watch.on_plan()
        if watch.is_due(warm(0), now_ms):
            asked.append(now_ms // FIRST_PAUSE_MS)
        now_ms += FIRST_PAUSE_MS // 10
    assert asked == [0, 1, 3, 7, 15, 31]


def test_a_pause_is_never_longer_than_that_of_the_timer(watch):
    asked, now_ms = [], 0
    while now_ms < 6_000_000:
        watch.on_plan()
        if watch.is_due(warm(0), now_ms):
            asked.append(now_ms)
        now_ms += 1000
    assert max(later - earlier for earlier, later in itertools.pairwise(asked)) <= 600_000


def test_other_warm_ups_are_asked_for_at_once(watch):
    assert watch.is_due(warm(0), 0)
    watch.on_plan()
    assert watch.is_due(warm(1), 1)


def test_one_that_has_caught_up_does_not_wait_for_the_others(watch):
    assert not watch.is_due(warm(on_their_way=(0, 1)), 0)
    assert watch.is_due(warm(0, on_their_way=[1]), 1)


def test_those_that_catch_up_while_others_do_not_are_asked_for_together(watch):
    asked = []
    for now_ms in range(0, 3 * TOGETHER_MS + 1, TOGETHER_MS // 10):  # every tenth of a second one more of forty
        watch.on_plan()
        caught_up = now_ms // (TOGETHER_MS // 10) + 1
        if watch.is_due(warm(*range(caught_up), on_their_way=range(caught_up, 40)), now_ms):
            asked.append(now_ms)
    assert asked == [0, TOGETHER_MS, 2 * TOGETHER_MS, 3 * TOGETHER_MS]


def test_the_last_one_waits_for_nobody(watch):
    assert watch.is_due(warm(0, on_their_way=[1]), 0)
    watch.on_plan()
    assert watch.is_due(warm(0, 1), 1)


def test_one_that_falls_behind_and_catches_up_again_is_no_reason_to_hurry(watch):
    asked, now_ms = [], 0
    while now_ms < 20 * FIRST_PAUSE_MS:
        watch.on_plan()
        is_behind = now_ms // 100 % 2 == 1
        if watch.is_due(warm(on_their_way=(0, 1)) if is_behind else warm(0, on_their_way=[1]), now_ms):
            asked.append(now_ms // FIRST_PAUSE_MS)
        now_ms += 100
    assert asked == [0, 1, 3, 7, 15]


def test_a_task_that_comes_back_as_a_warm_up_is_asked_for_at_once(watch):
    assert watch.is_due(warm(0), 0)
    watch.on_plan()
    assert not watch.is_due(warm(), 1)
    assert watch.is_due(warm(0), 2)


# the leader did not move them, because more was committed when the rebalance began than may be restored


def test_what_was_committed_for_the_rebalance_is_read_and_asked_for_again_at_once(watch):
    assert watch.is_due(warm(0, has=1000), 0)
    assert not watch.is_due(warm(0, has=6000), 100)  # the plan is not there yet
    watch.on_plan()
    assert not watch.is_due(warm(0, lag=4900, has=1100), 200)
    assert watch.is_due(warm(0, has=6000), 300)


def test_what_the_leader_accepts_is_no_reason_to_ask_again(watch):
    assert watch.is_due(warm(0, has=1000), 0)
    watch.on_plan()
    assert not watch.is_due(warm(0, has=1100), 100)


def test_each_commit_must_be_half_of_the_one_before_to_go_on_like_that(watch):
    assert watch.is_due(warm(0, has=1000), 0)
    for now_ms, has in ((100, 9000), (200, 13_000), (300, 15_000)):  # 8000, 4000, 2000
        watch.on_plan()
        assert watch.is_due(warm(0, has=has), now_ms)
    watch.on_plan()
    assert not watch.is_due(warm(0, has=16_500), 400)
    assert watch.is_due(warm(0, has=16_500), 300 + FIRST_PAUSE_MS)
    watch.on_plan()
    assert watch.is_due(warm(0, has=30_000), 400 + FIRST_PAUSE_MS)  # all that was held back during the pause


def test_an_app_that_always_writes_more_than_is_accepted_is_not_rebalanced_all_the_time(watch):
    asked, now_ms = 0, 0
    while now_ms < 40 * FIRST_PAUSE_MS:
        watch.on_plan()
        asked += watch.is_due(warm(0, has=10 * now_ms), now_ms)
        now_ms += 250
    assert asked <= 2 * 6


@pytest.mark.parametrize(("per_second", "requests"), [(1, 1), (100, 2), (300, 3)])
def test_a_task_that_held_its_changelog_back_for_thirty_seconds_moves_within_two(watch, per_second, requests):
    """A rebalance takes 200 ms, the copy reads 10,000 records a second, and 100 of them may be left."""
    now_ms, committed_ms, has, left = 30_000, 0, 10_000, []
    while not left or left[-1] > 100:
        watch.on_plan()
        assert watch.is_due(warm(0, has=has), now_ms)
        left.append(per_second * (now_ms - committed_ms) // 1000)
        committed_ms = now_ms
        has += left[-1]
        now_ms += 200 + left[-1] // 10
    assert len(left) == requests and now_ms <= 32_000


def test_it_can_be_switched_off():
    watch = WarmUpWatch(sf.StreamsConfig(application_id="app", probing_when_caught_up=False))
    assert not watch.is_due(warm(0), 0)


# what the StreamThread makes of it


def thread(num_standby_replicas=1, has_lost_state=False, is_due=False):
    asked = []
    tasks = SimpleNamespace(has_lost_state=has_lost_state, standbys=None)
    return asked, SimpleNamespace(
        name="app-0",
        tasks=tasks,
        _config=sf.StreamsConfig(application_id="app", num_standby_replicas=num_standby_replicas),
        _membership=SimpleNamespace(enforce_rebalance=asked.append),
        _warm_ups=SimpleNamespace(is_due=lambda standbys, now_ms: is_due),
        _clock=SimpleNamespace(monotonic_ms=lambda: 0),
    )


def test_lost_state_of_an_active_task_is_a_reason_to_rebalance_once_if_there_are_standbys():
    asked, member = thread(has_lost_state=True)
    StreamThread._ask_for_rebalance(member)
    StreamThread._ask_for_rebalance(member)
    assert asked == ["state of an active task was lost, a standby may be nearer"]
    asked, member = thread(num_standby_replicas=0, has_lost_state=True)
    StreamThread._ask_for_rebalance(member)
    assert asked == [] and not member.tasks.has_lost_state


def test_warm_ups_that_have_caught_up_are_a_reason_to_rebalance():
    asked, member = thread(is_due=True)
    StreamThread._ask_for_rebalance(member)
    assert asked == ["warm-ups have caught up"]
