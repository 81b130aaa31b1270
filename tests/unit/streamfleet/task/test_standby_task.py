"""A copy of a task's stores: replayed, never written to, and handed over with its engines."""

import pytest

import streamfleet as sf
from streamfleet.errors import StoreUnavailableError, StreamsError
from streamfleet.ids import TaskId, TopicPartition
from streamfleet.metrics import Metrics
from streamfleet.records import RawRecord
from streamfleet.task.standby_task import StandbyTask
from streamfleet.task.store_engines import StoreEngines
from streamfleet.task.stream_task import StreamTask, inputs_of
from streamfleet.testing.manual_clock import ManualClock

STRING = sf.serdes.string()
CONFIG = sf.StreamsConfig(application_id="app", default_key_serde=STRING, default_value_serde=STRING)
LOG = TopicPartition("app-latest-changelog", 0)


def topology(kind):
    builder = sf.StreamsBuilder()
    builder.stream("in").group_by_key().reduce(lambda old, new: new, store="latest")
    return builder.build(CONFIG.with_(dsl_store_kind=kind)).processor_topology("app", 0)


@pytest.fixture(params=["rocksdb", "in_memory"])
def whole(request):
    return topology(request.param)


def standby(whole, engines):
    task = StandbyTask(TaskId(0, 0), whole, CONFIG, engines=engines, metrics=Metrics(), state_id="0_0")
    task.initialize()
    return task


def active(whole, engines, producer):
    task = StreamTask(
        TaskId(0, 0),
        whole,
        inputs_of(whole, [TopicPartition("in", 0)]),
        CONFIG,
        clock=ManualClock(7),
        producer=producer,
        engines=engines,
        metrics=Metrics(),
        lag_of=lambda partition: 0,
        state_id="0_0",
    )
    task.initialize()
    return task


def change(offset, key, value):
    return RawRecord(LOG.topic, 0, offset, offset, key, value)


def test_replayed_records_are_the_rows_with_their_offset(whole, tmp_path):
    task = standby(whole, StoreEngines(tmp_path / "task"))
    assert task.restore_positions() == {LOG: None}
    task.restore(LOG, [change(3, b"a", b"1"), change(5, b"a", b"2"), change(6, b"b", None)], 6)
    assert task.stores["latest"].get("a").value == "2"
    assert task.restore_positions() == {LOG: 7}
    with task.committed_stores.reading() as stores:
        assert stores.store("latest").get("a").value == "2"
    task.close()


def test_its_stores_cannot_be_written_to(whole, tmp_path):
    task = standby(whole, StoreEngines(tmp_path / "task"))
    with pytest.raises(StreamsError, match="only its active task may"):
        task.stores["latest"].put("a", sf.ValueAndTimestamp("1", 0))
    task.close()


def test_a_copy_becomes_active_and_a_copy_again_with_all_its_rows(whole, tmp_path, producer):
    engines = StoreEngines(tmp_path / "task")
    first = standby(whole, engines)
    first.restore(LOG, [change(0, b"a", b"1")], 0)
    readers = first.committed_stores
    task = active(whole, first.detach(), producer)
    with pytest.raises(StoreUnavailableError), readers.reading():
        pass
    assert task.restore_positions() == {LOG: 1}
    task.complete_restoration()
    task.add_records(TopicPartition("in", 0), [RawRecord("in", 0, 0, 5, b"b", b"2")])
    assert task.process()
    task.prepare_commit()
    task.post_commit({LOG.topic: 1})
    task.suspend()
    again = standby(whole, task.detach())
    assert again.stores["latest"].get("a").value == "1" and again.stores["latest"].get("b").value == "2"
    assert again.restore_positions() == {LOG: 2}
    again.close()


def test_only_what_is_on_disk_counts_once_it_is_closed(tmp_path):
    for kind, kept in (("rocksdb", 1), ("in_memory", 0)):
        task = standby(topology(kind), StoreEngines(tmp_path / kind))
        task.restore(LOG, [change(0, b"a", b"1")], 0)
        assert task.offset_sum_on_disk() == kept
        task.close()


def test_an_active_task_with_uncommitted_work_cannot_be_handed_over(whole, tmp_path, producer):
    task = active(whole, StoreEngines(tmp_path / "task"), producer)
    task.complete_restoration()
    task.add_records(TopicPartition("in", 0), [RawRecord("in", 0, 0, 5, b"b", b"2")])
    task.process()
    task.suspend()
    with pytest.raises(StreamsError, match="uncommitted work"):
        task.detach()
    task.discard()
    task.close()


def test_the_directory_is_given_up_when_the_engines_are_closed_and_not_before(whole, tmp_path, producer):
    closed = []
    engines = StoreEngines(tmp_path / "task", on_close=lambda: closed.append(True))
    first = standby(whole, engines)
    task = active(whole, first.detach(), producer)
    assert not closed
    task.suspend()
    task.close()
    assert closed == [True]
