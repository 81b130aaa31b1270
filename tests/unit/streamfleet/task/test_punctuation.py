from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from streamfleet.task.punctuation import PunctuationQueue, PunctuationSchedule


class Calls:
    def __init__(self, queue: PunctuationQueue) -> None:
        self.queue = queue
        self.times: list[int] = []

    def schedule(self, due_ms: int, interval_ms: int) -> PunctuationSchedule:
        schedule = PunctuationSchedule("p", due_ms, interval_ms, self.times.append)
        self.queue.add(schedule)
        return schedule

    def at(self, *times_ms: int) -> list[int]:
        for time_ms in times_ms:
            self.queue.punctuate(time_ms, lambda schedule, now_ms: schedule.callback(now_ms))
        return self.times


def test_schedule_keeps_its_rhythm_and_fires_once_for_missed_intervals():
    calls = Calls(PunctuationQueue())
    calls.schedule(0, 10)
    assert calls.at(3, 8, 12, 11, 45, 49, 50, 51) == [3, 12, 45, 50]


def test_nothing_fires_before_its_time():
    calls = Calls(PunctuationQueue())
    calls.schedule(100, 10)
    assert calls.at(0, 99) == []
    assert calls.at(100) == [100]


def test_cancelled_schedule_never_fires_again():
    calls = Calls(PunctuationQueue())
    schedule = calls.schedule(0, 10)
    calls.at(5)
    schedule.cancel()
    assert calls.at(50) == [5]


def test_punctuator_can_cancel_itself():
    queue = PunctuationQueue()
    fired: list[int] = []

    def once(now_ms: int) -> None:
        fired.append(now_ms)
        schedule.cancel()

    schedule = PunctuationSchedule("p", 0, 10, once)
    queue.add(schedule)
    for now_ms in (5, 50):
        queue.punctuate(now_ms, lambda due, time_ms: due.callback(time_ms))
    assert fired == [5]


def test_schedule_that_a_punctuator_adds_fires_in_the_same_round_if_it_is_due():
    queue = PunctuationQueue()
    fired: list[str] = []
    second = PunctuationSchedule("second", 0, 100, lambda now_ms: fired.append("second"))

    def first(now_ms: int) -> None:
        fired.append("first")
        queue.add(second)

    queue.add(PunctuationSchedule("first", 0, 100, first))
    assert queue.punctuate(5, lambda due, time_ms: due.callback(time_ms)) is True
    assert fired == ["first", "second"]


def test_round_without_due_schedules_says_so():
    calls = Calls(PunctuationQueue())
    calls.schedule(10, 10)
    assert calls.queue.punctuate(9, lambda due, time_ms: None) is False


@given(st.integers(0, 50), st.integers(1, 20), st.lists(st.integers(0, 500), min_size=1))
def test_next_time_is_the_first_multiple_after_now(start_ms, interval_ms, times_ms):
    calls = Calls(PunctuationQueue())
    schedule = calls.schedule(start_ms, interval_ms)
    for now_ms in sorted(times_ms):
        calls.at(now_ms)
        assert (schedule.due_ms - start_ms) % interval_ms == 0
        assert schedule.due_ms > now_ms
        assert schedule.due_ms - interval_ms <= now_ms or schedule.due_ms == start_ms
