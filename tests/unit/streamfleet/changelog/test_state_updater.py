"""StateUpdater: reads changelogs to where they ended at the start, applies batches, and hands tasks back."""

import pytest

from streamfleet.changelog.state_updater import StateUpdater
from streamfleet.errors import TaskCorruptedError
from streamfleet.failpoints import NoFailpoints
from streamfleet.ids import TaskId, TopicPartition
from streamfleet.ports import OffsetKind, OffsetOutOfRange
from streamfleet.records import RawRecord

LOG = TopicPartition("app-s-changelog", 0)


class Log:
    """One changelog partition: offsets from `first`; markers are offsets without a record."""

    def __init__(self, last, first=0, markers=()):
        self.first, self.end, self.markers = first, last + 1, set(markers)

    def record(self, offset):
        return RawRecord(LOG.topic, LOG.partition, offset, offset, f"k{offset}".encode(), b"v")


class Broker:
    """Consumer and Admin over Logs, as far as a StateUpdater uses them."""

    def __init__(self, log):
        self.logs = {LOG: log}
        self.positions = {}
        self.events = []

    def list_offsets(self, partitions, kind):
        ends = {OffsetKind.EARLIEST: "first", OffsetKind.HIGH_WATERMARK: "end"}
        return {partition: getattr(self.logs[partition], ends[kind]) for partition in partitions}

    def incremental_assign(self, positions):
        self.positions.update(positions)

    def incremental_unassign(self, partitions):
        for partition in partitions:
            self.positions.pop(partition, None)

    def position(self, partition):
        return self.positions[partition]

    def poll_batch(self, timeout_ms, max_records, per_call=3):
        batch = []
        for partition, position in list(self.positions.items()):
            log = self.logs[partition]
            if position < log.first:
                self.events.append(OffsetOutOfRange(partition, position))
                continue
            upto = min(position + per_call, log.end)
            batch += [log.record(offset) for offset in range(position, upto) if offset not in log.markers]
            self.positions[partition] = upto
        return batch

    def take_events(self):
        events, self.events = self.events, []
        return events


class Task:
    def __init__(self, start=None, source_changelogs=()):
        self.task_id = TaskId(0, 0)
        self.source_changelogs = frozenset(source_changelogs)
        self.start = start
        self.restored, self.offsets = [], []

    def restore_positions(self):
        return {LOG: self.start}

    def restore(self, partition, records, last_offset):
        self.restored += [record.offset for record in records]
        self.offsets.append(last_offset)


def restore(log, task, committed=None, steps=20):
    broker = Broker(log)
    updater = StateUpdater(broker, broker, NoFailpoints())
    updater.add(task, committed or {})
    for _ in range(steps):
        updater.run_once(0)
    return broker, updater


def test_everything_is_read_when_nothing_is_here():
    task = Task()
    broker, updater = restore(Log(last=7), task)
    assert task.restored == list(range(8))
    assert updater.take_restored() == [task]
    assert broker.positions == {}


def test_reading_goes_on_behind_the_stored_offset():
    task = Task(start=5)
    restore(Log(last=7), task)
    assert task.restored == [5, 6, 7]


def test_a_task_that_is_up_to_date_is_handed_back_at_once():
    task = Task(start=8)
    broker, updater = restore(Log(last=7), task, steps=0)
    assert updater.take_restored() == [task]
    assert not updater.has_work


def test_the_end_is_that_of_the_start():
    log = Log(last=7)
    broker = Broker(log)
    updater = StateUpdater(broker, broker, NoFailpoints())
    task = Task()
    updater.add(task, {})
    log.end = 100
    for _ in range(5):
        updater.run_once(0)
    assert updater.take_restored() == [task]
    assert task.restored == list(range(8))


def test_markers_at_the_end_are_passed_over():
    task = Task()
    _, updater = restore(Log(last=7, markers={6, 7}), task)
    assert task.restored == list(range(6))
    assert updater.take_restored() == [task]


def test_offsets_are_written_with_every_batch_and_never_go_back():
    task = Task()
    restore(Log(last=10), task)
    assert task.offsets == sorted(set(task.offsets))
    assert task.offsets[-1] == 10


def test_an_input_topic_is_restored_only_as_far_as_it_was_processed():
    task = Task(source_changelogs=[LOG.topic])
    _, updater = restore(Log(last=7), task, committed={LOG: 4})
    assert task.restored == [0, 1, 2, 3]
    assert updater.take_restored() == [task]


def test_a_truncated_changelog_makes_the_task_corrupt():
    task = Task(start=2)
    _, updater = restore(Log(last=9, first=5), task)
    ((failed, error),) = updater.take_failed()
    assert failed is task
    assert isinstance(error, TaskCorruptedError)
    assert "goes on from 2" in str(error)
    assert updater.take_restored() == []


@pytest.mark.parametrize("steps", [0, 1])
def test_a_task_can_be_taken_away_while_it_is_restored(steps):
    task = Task()
    broker, updater = restore(Log(last=50), task, steps=steps)
    assert updater.remove(task.task_id) is task
    assert broker.positions == {}
    updater.run_once(0)
    assert updater.take_restored() == []


def test_progress_counts_what_is_left():
    task = Task()
    _, updater = restore(Log(last=9), task, steps=1)
    (progress,) = updater.progress()
    assert (progress.restored_records, progress.remaining) == (3, 7)
