"""What a StreamThread does when an offset that it wanted to read is gone."""

from types import SimpleNamespace

import pytest

import streamfleet as sf
from streamfleet.failpoints import NoFailpoints
from streamfleet.ids import TopicPartition
from streamfleet.kafka.errors import TaskMigratedError
from streamfleet.ports import OffsetOutOfRange
from streamfleet.testing import ManualClock
from streamfleet.thread.stream_thread import StreamThread

MISSING = OffsetOutOfRange(TopicPartition("app-by-word-repartition", 1), 4056)


def thread_of(noted, *, processed_elsewhere):
    tasks = SimpleNamespace(
        has_room=lambda: True,
        was_processed_elsewhere=lambda partition, offset: processed_elsewhere,
        go_on_behind_gap=lambda partition, offset: noted.append("gap"),
    )
    membership = SimpleNamespace(enforce_rebalance=lambda reason: noted.append("rebalance"))
    nothing = SimpleNamespace()
    return StreamThread(
        "t",
        sf.StreamsConfig(application_id="app"),
        tasks,
        membership,
        nothing,
        nothing,
        ManualClock(),
        report=lambda asks: None,
        tasks_of=lambda plan: (),
        fences_of=lambda plan: (),
        asks_for_shutdown=lambda plan: False,
        failpoints=NoFailpoints(),
    )


def test_a_member_whose_input_was_processed_by_another_gives_its_tasks_up_and_joins_again():
    noted = []
    with pytest.raises(TaskMigratedError, match="processed beyond offset 4056 by somebody else; this member was away"):
        thread_of(noted, processed_elsewhere=True)._on_trouble(MISSING)
    assert noted == ["rebalance"]


def test_input_that_nobody_has_processed_is_a_gap():
    noted = []
    thread_of(noted, processed_elsewhere=False)._on_trouble(MISSING)
    assert noted == ["gap"]
