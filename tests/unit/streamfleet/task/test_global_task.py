from __future__ import annotations

import pytest

from streamfleet.errors import DeserializationError, ProcessingError, StreamsError
from streamfleet.ids import TopicPartition
from streamfleet.metrics import Metrics
from streamfleet.processor.api import Processor, PunctuationType
from streamfleet.processor.handlers import HandlerResponse, HandlerResult, ProcessingHandler
from streamfleet.records import ProducerRecord
from streamfleet.state.stores import Stores
from streamfleet.task.global_task import GlobalTask
from streamfleet.task.store_engines import StoreEngines
from streamfleet.testing.manual_clock import ManualClock
from streamfleet.topology.nodes import GlobalStoreEntry, ProcessorNode, SourceNode


class Fill(Processor):
    def process(self, record):
        if record.value == "bad":
            raise RuntimeError("boom")
        self.context.get_state_store("rates").put(record.key, record.value)


@pytest.fixture
def metrics():
    return Metrics()


@pytest.fixture
def task_of(config, metrics, tmp_path, text):
    tasks = []

    def build(supplier=Fill, **settings):
        builder = Stores.key_value("rates", kind="in_memory", key_serde=text, value_serde=text, logging=False)
        entry = GlobalStoreEntry(builder, SourceNode("gs", ("g",)), ProcessorNode("gp", supplier, ("gs",), ("rates",)))
        task = GlobalTask(
            (entry,),
            config.with_(**settings),
            clock=ManualClock(),
            engines=StoreEngines(tmp_path / "global"),
            metrics=metrics,
        )
        task.initialize()
        tasks.append(task)
        return task

    yield build
    for task in tasks:
        task.close()


def test_records_go_through_the_processor_into_the_store(task_of, raw):
    task = task_of()
    task.update(raw("1.5", 3, 0, "g", "eur"))
    task.flush()
    assert task.stores["rates"].get("eur") == "1.5"
    assert task.next_offsets == {TopicPartition("g", 0): 1}


def test_unreadable_record_asks_the_handler_but_writes_no_dead_letter(task_of, metrics, raw):
    task = task_of(deserialization_handler="continue", dead_letter_topic="dlq")
    task.update(raw("what?", 3, 0, "g"))
    assert metrics.dropped_records == {("gs", "deserialization error"): 1}
    assert task.next_offsets == {TopicPartition("g", 0): 1}


def test_unreadable_record_fails_by_default(task_of, raw):
    with pytest.raises(DeserializationError, match="operator gs; topic g"):
        task_of().update(raw("what?", 3, 0, "g"))


def test_error_in_the_processor_fails_unless_the_handler_is_to_see_it(task_of, raw):
    task = task_of(processing_handler="continue")
    with pytest.raises(ProcessingError, match="operator gp; topic g"):
        task.update(raw("bad", 3, 0, "g"))


def test_processor_of_a_global_store_has_no_schedule(task_of):
    class Scheduling(Fill):
        def init(self, context):
            context.schedule(10, PunctuationType.WALL_CLOCK_TIME, print)

    with pytest.raises(StreamsError, match="there is no punctuation"):
        task_of(Scheduling)


class Letters(ProcessingHandler):
    def __init__(self, response):
        self.response = response
        self.asked = []

    def handle(self, context, record, error):
        self.asked.append((context.operator, context.topic, context.dead_letter_topic, record.value, str(error)))
        return HandlerResult(self.response, (ProducerRecord("mine", None, b"letter", 0),))


def test_the_processing_handler_is_asked_where_it_sees_global_stores(task_of, metrics, raw):
    handler = Letters(HandlerResponse.CONTINUE)
    task = task_of(processing_handler=handler, processing_handler_sees_global_stores=True, dead_letter_topic="dlq")
    task.update(raw("bad", 3, 0, "g"))
    assert handler.asked == [("gp", "g", None, "bad", "boom")]
    assert metrics.dropped_records == {("gp", "processing error"): 1}
    assert task.next_offsets == {TopicPartition("g", 0): 1}


def test_a_processing_handler_that_sees_global_stores_may_fail(task_of, raw):
    task = task_of(processing_handler=Letters(HandlerResponse.FAIL), processing_handler_sees_global_stores=True)
    with pytest.raises(ProcessingError, match="operator gp; topic g"):
        task.update(raw("bad", 3, 0, "g"))
