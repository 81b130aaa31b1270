"""When a member asks for a rebalance because of its warm-ups."""

import itertools
from types import SimpleNamespace

import pytest

import streamfleet as sf
from streamfleet.ids import TaskId
from streamfleet.thread.stream_thread import StreamThread
from streamfleet.thread.warm_up_watch import FIRST_PAUSE_MS, TOGETHER_MS, WarmUpWatch


def warm(*partitions, lag=0, on_their_way=()):
    """Warm-ups that are so far behind, and others that have far to go."""
    lags = dict.fromkeys(map(task, partitions), lag) | dict.fromkeys(map(task, on_their_way), 10**6)
    return SimpleNamespace(
        warm_ups=frozenset(lags),
        warm=lambda acceptable: frozenset(task_id for task_id, lag in lags.items() if lag <= acceptable),
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
        _clock=SimpleNamespace(now_ms=lambda: 0),
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
