"""The life of a StreamThread: what may follow what, and nothing else."""

import itertools

import pytest
from tests.unit.streamfleet.thread.test_end_of_a_thread import thread_of

from streamfleet.errors import StreamsError
from streamfleet.thread.stream_thread import StreamThread
from streamfleet.thread.thread_phases import TRANSITIONS, ThreadPhase, checked_transition

CREATED, STARTING, ASSIGNED, RUNNING, STOPPING, DEAD = ThreadPhase

ALLOWED = {
    (CREATED, STARTING),
    (CREATED, DEAD),  # stopped before it was started
    (STARTING, ASSIGNED),
    (STARTING, STOPPING),
    (ASSIGNED, ASSIGNED),
    (ASSIGNED, RUNNING),
    (ASSIGNED, STOPPING),
    (RUNNING, ASSIGNED),
    (RUNNING, STOPPING),
    (STOPPING, DEAD),
}


def test_every_phase_has_its_row():
    assert TRANSITIONS.keys() == set(ThreadPhase)


@pytest.mark.parametrize(("current", "target"), list(itertools.product(ThreadPhase, ThreadPhase)))
def test_a_thread_moves_as_the_drawing_says(current, target):
    if (current, target) in ALLOWED:
        assert checked_transition(current, target) is target
    else:
        with pytest.raises(StreamsError, match=f"cannot go from {current.value} to {target.value}"):
            checked_transition(current, target)


def test_a_thread_is_started_once():
    thread = thread_of([], broken=None)
    thread.start()
    assert thread.phase is STARTING
    with pytest.raises(StreamsError, match="cannot go from starting to starting"):
        thread.start()


@pytest.mark.parametrize("end", [StreamThread.stop, StreamThread.fail])
def test_a_thread_dies_once_whether_it_was_started_or_not(end):
    for was_started in (False, True):
        closed = []
        thread = thread_of(closed, broken=None)
        if was_started:
            thread.start()
        end(thread)
        assert thread.phase is DEAD
        before = list(closed)
        end(thread)
        assert closed == before
        with pytest.raises(StreamsError, match=r"cannot go from dead"):
            thread.start()
