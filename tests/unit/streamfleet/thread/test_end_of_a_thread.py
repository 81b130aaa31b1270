"""How a StreamThread ends: whatever cannot be closed, the rest is."""

from types import SimpleNamespace

import pytest

import streamfleet as sf
from streamfleet.failpoints import NoFailpoints
from streamfleet.testing import ManualClock
from streamfleet.thread.stream_thread import StreamThread
from streamfleet.thread.thread_phases import ThreadPhase


def thread_of(closed, *, broken):
    """A thread over clients that only note that they were closed; one of them fails at it."""

    def closer(name):
        def close(*_, **__):
            closed.append(name)
            if name == broken:
                raise sf.StreamsError(f"{name} cannot be closed")

        return close

    tasks = SimpleNamespace(
        tasks={},
        running=[],
        release=lambda ids: None,
        drop_all=closer("drop"),
        close=closer("tasks"),
        has_room=lambda: True,
    )
    membership = SimpleNamespace(leave=closer("membership"), can_commit=lambda: True, start=lambda report: None)
    return StreamThread(
        "t",
        sf.StreamsConfig(application_id="app"),
        tasks,
        membership,
        SimpleNamespace(close=closer("consumer")),
        SimpleNamespace(close=closer("commit")),
        ManualClock(),
        report=lambda asks: None,
        tasks_of=lambda plan: (),
        fences_of=lambda plan: (),
        asks_for_shutdown=lambda plan: False,
        failpoints=NoFailpoints(),
    )


@pytest.mark.parametrize("broken", ["drop", "membership", "commit", "consumer", "tasks"])
@pytest.mark.parametrize("end", [StreamThread.stop, StreamThread.fail])
def test_one_that_cannot_be_closed_does_not_keep_the_others_open(end, broken):
    closed = []
    thread = thread_of(closed, broken=broken)
    thread.start()
    with pytest.raises(sf.StreamsError, match=f"{broken} cannot be closed"):
        end(thread)
    assert closed == ["drop", "membership", "commit", "consumer", "tasks"]
    assert thread.phase is ThreadPhase.DEAD
