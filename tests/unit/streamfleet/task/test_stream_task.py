from __future__ import annotations

from typing import Any

import pytest

from streamfleet.errors import DeserializationError, ProcessingError, StreamsError
from streamfleet.ids import TaskId, TopicPartition
from streamfleet.kafka.client_errors import BrokerUnavailableError
from streamfleet.metrics import Metrics
from streamfleet.processor.api import Processor, PunctuationType
from streamfleet.records import ProducerRecord
from streamfleet.state.stores import Stores
from streamfleet.task.offsets import CommittedOffset
from streamfleet.task.phases import TaskPhase
from streamfleet.task.store_engines import StoreEngines
from streamfleet.task.stream_task import StreamTask, inputs_of
from streamfleet.testing.manual_clock import ManualClock
from streamfleet.topology.nodes import ProcessorNode, ProcessorTopology, SinkNode, SourceNode, StoreEntry

IN = TopicPartition("in", 0)
OTHER = TopicPartition("other", 0)


class Step(Processor):
    """Does what a function f(processor, record) says; `begin` is called at init."""

    def __init__(self, process, begin=None):
        self._process = process
        self._begin = begin
        self.closed = 0

    def init(self, context):
        super().init(context)
        if self._begin is not None:
            self._begin(self)

    def process(self, record):
        self._process(self, record)

    def close(self):
        self.closed += 1


def forward(step, record):
    step.context.forward(record)


def count(step, record):
    store = step.context.get_state_store("counts")
    store.put(record.key, record.value)
    step.context.forward(record)


@pytest.fixture
def clock():
    return ManualClock(1000)


@pytest.fixture
def metrics():
    return Metrics()


@pytest.fixture
def task_of(config, producer, clock, metrics, tmp_path, text):
    """task_of(process, begin=..., **settings): source in (and other) -> processor p -> sink out, with one store."""
    made: list[StreamTask] = []

    def build(process=forward, begin=None, *, committed=None, start=True, sources=("in",), **settings):
        builder = Stores.key_value("counts", kind="in_memory", key_serde=text, value_serde=text)
        names = tuple(f"src-{topic}" for topic in sources)
        nodes: list[Any] = [SourceNode(f"src-{topic}", (topic,)) for topic in sources]
        nodes.append(ProcessorNode("p", lambda: Step(process, begin), names, ("counts",)))
        nodes.append(SinkNode("snk", "out", ("p",)))
        children = dict.fromkeys(names, ("p",)) | {"p": ("snk",), "snk": ()}
        topology = ProcessorTopology(tuple(nodes), children, (StoreEntry(builder, "app-counts-changelog"),), ())
        task = StreamTask(
            TaskId(0, 0),
            topology,
            inputs_of(topology, [TopicPartition(topic, 0) for topic in sources]),
            config.with_(**settings),
            clock=clock,
            producer=producer,
            engines=StoreEngines(tmp_path / f"task-{len(made)}"),
            metrics=metrics,
            lag_of=lambda partition: 0,
        )
        made.append(task)
        if start:
            task.initialize()
            task.complete_restoration(committed)
        return task

    yield build
    for task in made:
        if task.phase not in (TaskPhase.SUSPENDED, TaskPhase.CLOSED):
            task.suspend()
        if task.phase is TaskPhase.SUSPENDED:
            task.discard()
            task.close()


def commit(task):
    offsets = task.prepare_commit()
    task.post_commit()
    return offsets


def test_record_goes_from_queue_to_producer(task_of, producer, raw):
    task = task_of()
    task.add_records(IN, [raw("v", 5)])
    assert task.process() == 1
    assert producer.sent == [ProducerRecord("out", b"k", b"v", 5, (), None)]
    assert task.process() == 0


def test_commit_names_the_next_offset_and_the_partition_time(task_of, raw):
    task = task_of()
    task.add_records(IN, [raw("a", 5, 10), raw("b", 3, 11)])
    task.process()
    task.process()
    assert task.commit_needed
    assert commit(task) == {IN: CommittedOffset(12, 5)}
    assert not task.commit_needed
    assert task.prepare_commit() == {}


def test_committed_offset_is_that_of_the_next_unprocessed_record(task_of, raw):
    task = task_of()
    task.add_records(IN, [raw("a", 5, 10), raw("b", 6, 15)])
    task.process()
    assert commit(task)[IN].offset == 15


def test_offset_of_a_dropped_record_is_committed_too(task_of, metrics, producer, raw):
    task = task_of(deserialization_handler="continue")
    task.add_records(IN, [raw("what?", 5, 10)])
    assert task.process() == 1
    assert commit(task) == {IN: CommittedOffset(11, -1)}
    assert producer.sent == []
    assert metrics.dropped_records == {("src-in", "deserialization error"): 1}


def test_unreadable_record_fails_when_it_becomes_the_head(task_of, raw):
    with pytest.raises(DeserializationError):
        task_of().add_records(IN, [raw("what?", 5)])


def test_store_changes_are_logged_with_the_record_s_timestamp(task_of, producer, raw):
    task = task_of(count, changelog_deduplicate=False)
    task.add_records(IN, [raw("v", 5)])
    task.process()
    commit(task)
    logged = [record for record in producer.sent if record.topic == "app-counts-changelog"]
    assert [(r.key, r.value, r.timestamp, r.partition) for r in logged] == [(b"k", b"v", 5, 0)]


def test_deduplicated_changelog_is_written_at_commit(task_of, producer, raw):
    task = task_of(count, changelog_deduplicate=True)
    task.add_records(IN, [raw("a", 5, 0), raw("b", 6, 1)])
    task.process()
    task.process()
    assert [record.topic for record in producer.sent] == ["out", "out"]
    commit(task)
    assert [(r.topic, r.value) for r in producer.sent[2:]] == [("app-counts-changelog", b"b")]


def test_error_in_a_processor_leaves_the_offset_uncommitted(task_of, raw):
    def fail(step, record):
        raise RuntimeError("boom")

    task = task_of(fail)
    task.add_records(IN, [raw("v", 5, 10)])
    with pytest.raises(ProcessingError, match="operator p; topic in, partition 0, offset 10"):
        task.process()
    assert not task.commit_needed


def test_stream_time_punctuation_runs_when_records_move_time(task_of, raw):
    fired: list[int] = []
    task = task_of(begin=lambda step: step.context.schedule(10, PunctuationType.STREAM_TIME, fired.append))
    assert task.punctuate_stream_time() is False
    for timestamp in (3, 8, 25):
        task.add_records(IN, [raw("v", timestamp)])
        task.process()
        task.punctuate_stream_time()
    assert fired == [3, 25]


def test_wall_clock_punctuation_runs_one_interval_after_it_was_scheduled(task_of, clock):
    fired: list[int] = []
    task = task_of(begin=lambda step: step.context.schedule(10, PunctuationType.WALL_CLOCK_TIME, fired.append))
    for step_ms in (9, 1, 35):
        clock.advance(step_ms)
        task.punctuate_wall_clock()
    assert fired == [1010, 1045]
    assert task.commit_needed


def test_anchored_schedule_waits_for_its_start(task_of, clock):
    fired: list[int] = []
    kind = PunctuationType.WALL_CLOCK_TIME
    task = task_of(begin=lambda step: step.context.schedule(100, kind, fired.append, start=1250))
    for _ in range(6):
        clock.advance(60)
        task.punctuate_wall_clock()
    assert fired == [1300, 1360]


def test_a_start_in_the_past_only_sets_the_rhythm_of_a_schedule(task_of, clock):
    fired: list[int] = []
    kind = PunctuationType.WALL_CLOCK_TIME
    task = task_of(begin=lambda step: step.context.schedule(100, kind, fired.append, start=250))
    for _ in range(4):
        clock.advance(30)
        task.punctuate_wall_clock()
    assert fired == [1060]


def test_punctuator_changes_stores_at_the_time_of_the_punctuation(task_of, producer, raw):
    def begin(step):
        store = step.context.get_state_store("counts")
        step.context.schedule(10, PunctuationType.STREAM_TIME, lambda now_ms: store.put("p", "x"))

    task = task_of(begin=begin, changelog_deduplicate=False)
    task.add_records(IN, [raw("v", 70)])
    task.process()
    task.punctuate_stream_time()
    assert [(r.topic, r.timestamp) for r in producer.sent] == [("out", 70), ("app-counts-changelog", 70)]


def test_error_of_a_punctuator_is_the_processing_handler_s_affair(task_of, clock, metrics):
    def begin(step):
        step.context.schedule(10, PunctuationType.WALL_CLOCK_TIME, lambda now_ms: now_ms // 0)

    task = task_of(begin=begin, processing_handler="continue")
    clock.advance(10)
    assert task.punctuate_wall_clock() is True
    clock.advance(10)
    assert task.punctuate_wall_clock() is True
    assert metrics.dropped_records == {("p", "processing error"): 2}


def test_processor_can_ask_for_a_commit(task_of, raw):
    task = task_of(lambda step, record: step.context.commit())
    task.add_records(IN, [raw("v", 5)])
    assert not task.commit_requested
    task.process()
    assert task.commit_requested
    commit(task)
    assert not task.commit_requested


def test_processor_metadata_travels_with_the_offsets_of_all_partitions(task_of, raw):
    task = task_of(
        lambda step, record: step.context.set_processor_metadata("closed", 40),
        committed={OTHER: CommittedOffset(7, 20)},
        sources=("in", "other"),
    )
    task.add_records(IN, [raw("v", 30, 1)])
    task.process()
    assert commit(task) == {IN: CommittedOffset(2, 30, {"closed": 40}), OTHER: CommittedOffset(7, 20, {"closed": 40})}


def test_task_goes_on_with_committed_time_and_metadata(task_of, raw):
    seen: list[Any] = []

    def look(step, record):
        seen.append((step.context.current_stream_time_ms(), step.context.processor_metadata("closed")))

    committed = {IN: CommittedOffset(5, 90, {"closed": 40}), OTHER: CommittedOffset(5, 80, {"closed": 60})}
    task = task_of(look, committed=committed, sources=("in", "other"))
    task.add_records(IN, [raw("v", 10, 5)])
    task.process()
    assert seen == [(90, 60)]


def test_task_waits_for_an_empty_partition(task_of, clock, raw):
    task = task_of(sources=("in", "other"), max_task_idle_ms=100)
    task.add_records(IN, [raw("v", 5)])
    assert task.process() == 0
    clock.advance(100)
    assert task.process() == 1


def test_nothing_is_processed_before_the_task_runs(task_of, raw):
    task = task_of(start=False)
    with pytest.raises(StreamsError, match="task 0_0 cannot process records while it is created"):
        task.process()


def test_suspended_task_forgets_records_and_schedules_and_can_run_again(task_of, clock, producer, raw):
    fired: list[int] = []
    task = task_of(begin=lambda step: step.context.schedule(10, PunctuationType.WALL_CLOCK_TIME, fired.append))
    task.add_records(IN, [raw("lost", 5)])
    task.suspend()
    task.resume()
    task.complete_restoration()
    assert not task.has_records
    clock.advance(10)
    task.punctuate_wall_clock()
    assert fired == [1010]
    task.add_records(IN, [raw("v", 6)])
    task.process()
    assert [record.value for record in producer.sent] == [b"v"]


def test_task_with_uncommitted_work_is_not_closed_by_accident(task_of, raw):
    task = task_of()
    task.add_records(IN, [raw("v", 5)])
    task.process()
    task.suspend()
    with pytest.raises(StreamsError, match="uncommitted work"):
        task.close()
    task.discard()
    task.close()
    assert task.phase is TaskPhase.CLOSED


def test_discarded_changes_are_gone_from_the_stores(task_of, raw):
    task = task_of(count)
    task.add_records(IN, [raw("committed", 5, 0)])
    task.process()
    commit(task)
    task.add_records(IN, [raw("aborted", 6, 1)])
    task.process()
    task.suspend()
    task.discard()
    assert task.stores["counts"].get("k") == "committed"


def test_partition_of_an_unknown_topic_is_refused():
    topology = ProcessorTopology((SourceNode("src", ("in",)),), {}, (), ())
    with pytest.raises(StreamsError, match="no source of the topology reads topic elsewhere"):
        inputs_of(topology, [TopicPartition("elsewhere", 0)])


# --- cut off half way ---


def no_room(step, record):
    raise BrokerUnavailableError("no room", code="_QUEUE_FULL")


def punctuates(step):
    step.context.schedule(10, PunctuationType.WALL_CLOCK_TIME, lambda timestamp: no_room(step, None))


def test_a_task_that_is_cut_off_in_the_middle_of_a_record_is_torn_until_it_is_discarded(task_of, raw):
    task = task_of(no_room)
    task.add_records(IN, [raw("v", 5)])
    assert not task.is_torn
    with pytest.raises(BrokerUnavailableError):
        task.process()
    assert task.is_torn
    task.suspend()
    task.discard()
    assert not task.is_torn


def test_a_task_that_is_cut_off_in_a_punctuation_or_a_commit_is_torn(task_of, raw, producer, clock, monkeypatch):
    task = task_of(begin=punctuates)
    clock.advance(10)
    with pytest.raises(BrokerUnavailableError):
        task.punctuate_wall_clock()
    assert task.is_torn
    other = task_of(count)
    other.add_records(IN, [raw("v", 5)])
    other.process()
    assert not other.is_torn
    monkeypatch.setattr(producer, "send", lambda record: no_room(None, record))
    with pytest.raises(BrokerUnavailableError):
        other.prepare_commit()
    assert other.is_torn


def test_a_record_that_the_broker_did_not_take_in_time_is_not_the_handlers_affair(task_of):
    task = task_of(production_handler="continue")
    late = BrokerUnavailableError("too late", code="_MSG_TIMED_OUT")
    with pytest.raises(BrokerUnavailableError):
        task.handle_delivery_failure(ProducerRecord("out", b"k", b"v", 5), late)
    assert task.is_torn


def put_first(step):
    step.context.get_state_store("counts").put("first", "1")


def test_what_an_operator_puts_at_its_init_is_committed_though_no_record_comes(task_of, producer):
    """Sent but not committed, it would keep a transaction open until that times out."""
    task = task_of(begin=put_first, changelog_deduplicate=False)
    assert [record.topic for record in producer.sent] == ["app-counts-changelog"]
    assert task.commit_needed
    assert commit(task) == {}
    assert not task.commit_needed


def test_a_task_whose_operators_were_cut_off_at_their_init_is_torn(task_of, producer, monkeypatch):
    def no_room(record):
        raise BrokerUnavailableError("no room", code="_QUEUE_FULL")

    task = task_of(begin=put_first, changelog_deduplicate=False, start=False)
    monkeypatch.setattr(producer, "send", no_room)
    task.initialize()
    with pytest.raises(BrokerUnavailableError):
        task.complete_restoration()
    assert task.is_torn


@pytest.mark.parametrize("method", ["deserialize", "serialize"])
def test_a_process_without_memory_leaves_out_no_record_whatever_the_handlers_say(
    task_of, text, raw, monkeypatch, method
):
    def no_memory(topic, value):
        raise MemoryError

    monkeypatch.setattr(text, method, no_memory)
    task = task_of(deserialization_handler="continue", production_handler="continue", processing_handler="continue")
    with pytest.raises(MemoryError):
        task.add_records(IN, [raw("v", 5)])
        task.process()
