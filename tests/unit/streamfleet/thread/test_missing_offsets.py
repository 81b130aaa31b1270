"""What a StreamThread does when an offset that it wanted to read is gone."""

from types import SimpleNamespace
from unittest.mock import Mock

import pytest

import streamfleet as sf
from streamfleet.failpoints import NoFailpoints
from streamfleet.ids import TopicPartition
from streamfleet.kafka.errors import GroupTimeoutError, TaskMigratedError
from streamfleet.ports import ClientTrouble, OffsetOutOfRange
from streamfleet.testing import ManualClock
from streamfleet.thread.stream_thread import StreamThread

MISSING = OffsetOutOfRange(TopicPartition("app-by-word-repartition", 1), 4056)


def thread_of(noted, *, processed_elsewhere, consumer=None):
    tasks = SimpleNamespace(
        has_room=lambda: True,
        is_restoring=False,
        processable_records=lambda: 0,
        was_processed_elsewhere=lambda partition, offset: processed_elsewhere,
        go_on_behind_gap=lambda partition, offset: noted.append("gap"),
    )
    membership = SimpleNamespace(enforce_rebalance=lambda reason: noted.append("rebalance"))
    nothing = consumer or SimpleNamespace()
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


class ToldOnce:
    """A consumer that says once that an offset is missing."""

    def __init__(self):
        self.events = [MISSING, ClientTrouble("_ALL_BROKERS_DOWN", "gone")]

    def poll_batch(self, timeout_ms, limit):
        return []

    def take_events(self):
        events, self.events = self.events, []
        return events


def poll(thread):
    with thread.gate.step():
        thread._poll()


def test_a_missing_offset_is_dealt_with_when_the_broker_answers_again():
    noted = []
    thread = thread_of(noted, processed_elsewhere=False, consumer=ToldOnce())
    thread.tasks.was_processed_elsewhere = Mock(side_effect=[GroupTimeoutError("no answer"), False])
    with pytest.raises(GroupTimeoutError):
        poll(thread)
    assert noted == []
    poll(thread)
    poll(thread)
    assert noted == ["gap"]


def test_a_missing_offset_is_forgotten_when_the_tasks_are_taken_away():
    noted = []
    thread = thread_of(noted, processed_elsewhere=False, consumer=ToldOnce())
    thread.tasks.was_processed_elsewhere = Mock(side_effect=[GroupTimeoutError("no answer"), False])
    thread.tasks.drop_all = lambda: None
    with pytest.raises(GroupTimeoutError):
        poll(thread)
    thread._drop_all()
    poll(thread)
    assert noted == []
