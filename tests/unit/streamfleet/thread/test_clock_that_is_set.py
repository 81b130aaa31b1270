"""The machine's clock is set by an hour, back or forward, while an app runs: nothing waits for it and nothing is given up."""

from functools import partial
from types import SimpleNamespace

import pytest
from tests.unit.streamfleet.thread.single_thread import INPUT, run
from tests.unit.streamfleet.thread.test_broker_away import bare_thread

from streamfleet.dsl.operators.stream_join import _SharedTime
from streamfleet.dsl.operators.window_close import CloseTimer
from streamfleet.kafka.client_errors import BrokerUnavailableError, MissingSourceTopicError
from streamfleet.ports import TopicInfo
from streamfleet.task.punctuation import PunctuationQueue, PunctuationSchedule
from streamfleet.testing import ManualClock
from streamfleet.thread.source_watch import SourceWatch

HOUR_MS = 3_600_000

either_way = pytest.mark.parametrize("step_ms", [-HOUR_MS, HOUR_MS], ids=["back", "forward"])


def set_by(clock, step_ms):
    clock.set_wall_clock(clock.now_ms() + step_ms)


@either_way
@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
def test_commits_go_on(thread_of, guarantee, step_ms):
    thread, cluster, _ = thread_of(guarantee)
    thread.start()
    run(thread)
    set_by(thread._clock, step_ms)
    cluster.write("in", 0, b"a", b"x")
    run(thread)
    assert cluster.committed_offsets == {INPUT: 1}


def test_a_broker_that_is_away_for_a_moment_does_not_end_the_app():
    thread = bare_thread(SimpleNamespace(is_torn=False), BrokerUnavailableError("no answer", code="_TIMED_OUT"))
    thread.run_once()
    set_by(thread._clock, HOUR_MS)
    thread.run_once()


@either_way
def test_inputs_are_looked_at_as_before(step_ms):
    clock, topic = ManualClock(), TopicInfo("in", "id", 1)
    found = {"in": topic}
    looks = []
    admin = SimpleNamespace(describe_topics=lambda names: looks.append(clock.monotonic_ms()) or found)
    watch = SourceWatch(admin, {"in": topic}, clock, interval_ms=1000, missing_timeout_ms=60_000)
    clock.advance(1000)
    watch.run_once()
    set_by(clock, step_ms)
    watch.run_once()
    clock.advance(1000)
    del found["in"]
    watch.run_once()
    set_by(clock, HOUR_MS)
    clock.advance(1000)
    watch.run_once()
    assert looks == [1000, 2000, 3000]
    clock.advance(60_000)
    with pytest.raises(MissingSourceTopicError):
        watch.run_once()


@pytest.mark.parametrize("kind", ["windows", "join"])
def test_results_that_are_looked_for_now_and_then_do_not_wait_until_the_clock_catches_up(kind):
    clock = ManualClock(HOUR_MS)
    context = SimpleNamespace(
        config=SimpleNamespace(windowed_emit_interval_ms=1000, outer_join_emit_interval_ms=1000),
        current_system_time_ms=clock.now_ms,
        processor_metadata=lambda name: None,
    )
    is_due = partial(CloseTimer(context, "w").is_due, 1) if kind == "windows" else _SharedTime(context).may_look
    assert [is_due(), is_due()] == [True, False]
    set_by(clock, -HOUR_MS)
    assert [is_due(), is_due()] == [True, False]
    clock.advance(1000)
    assert [is_due(), is_due()] == [True, False]


def test_punctuation_by_the_wall_clock_fires_once_for_an_hour_that_was_skipped():
    queue, fired = PunctuationQueue(), []
    queue.add(PunctuationSchedule("p", 1000, 1000, fired.append))
    clock = ManualClock(1000)
    for step_ms in (0, HOUR_MS, 1, 999):
        set_by(clock, step_ms)
        queue.punctuate(clock.now_ms(), lambda schedule, now_ms: schedule.callback(now_ms))
    assert fired == [1000, HOUR_MS + 1000, HOUR_MS + 2000]
