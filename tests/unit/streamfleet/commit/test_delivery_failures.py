"""A record that did not reach its topic is put down to the task that has sent it; or it is said that nobody knows which."""

import pytest
import structlog
from tests.unit.streamfleet.task.conftest import MemoryProducer

import streamfleet as sf
from streamfleet.commit.at_least_once import AtLeastOnceCommit
from streamfleet.failpoints import NoFailpoints
from streamfleet.ids import TaskId, TopicPartition
from streamfleet.kafka.client_errors import RecordRefusedError
from streamfleet.metrics import Metrics
from streamfleet.ports import DeliveryFailure
from streamfleet.processor.handlers import HandlerResponse, ProductionHandler
from streamfleet.records import ProducerRecord, RawRecord
from streamfleet.task.store_engines import StoreEngines
from streamfleet.task.stream_task import StreamTask, inputs_of
from streamfleet.testing import ManualClock

STRING = sf.serdes.string()
TOO_LARGE = RecordRefusedError("a record is too large", code="MSG_SIZE_TOO_LARGE")


def topology():
    """0: words are counted and written to `out`; 1: a copy of another topic, to `copies`."""
    builder = sf.StreamsBuilder()
    builder.stream("words").group_by_key().count(store="counts").to_stream().to("out")
    builder.stream("others").to("copies")
    return builder.build()


class Handler(ProductionHandler):
    def __init__(self, answer):
        self.answer, self.asked = answer, []

    def handle(self, context, record, error):
        self.asked.append(context)
        return self.answer

    def handle_serialization_error(self, context, record, error, origin):
        raise AssertionError


class Producer(MemoryProducer):
    """Takes every record, and says at the flush which of them have failed."""

    def __init__(self, *failed):
        super().__init__()
        self.failed = [DeliveryFailure(record, TOO_LARGE) for record in failed]

    def flush(self, timeout_ms):
        pass

    def take_failures(self):
        failed, self.failed = self.failed, []
        return failed

    def list_offsets(self, partitions, kind):
        return dict.fromkeys(partitions, 1)

    def commit(self, offsets):
        pass


@pytest.fixture
def commit_of(tmp_path):
    """Commits after one record in every task of both SubTopologies; the given records have failed."""
    made = []

    def commit(answer, *failed):
        handler, producer = Handler(answer), Producer(*failed)
        config = sf.StreamsConfig(
            application_id="app", default_key_serde=STRING, default_value_serde=STRING, production_handler=handler
        )
        ids = [TaskId(number, partition) for number in (1, 0) for partition in (1, 0)]
        made.extend(task_of(config, producer, task_id, ("words", "others")[task_id.sub_topology]) for task_id in ids)
        AtLeastOnceCommit(producer, producer, producer, NoFailpoints()).commit(made)
        return handler.asked

    def task_of(config, producer, task_id, topic):
        part = topology().processor_topology("app", task_id.sub_topology)
        place = TopicPartition(topic, task_id.partition)
        task = StreamTask(
            task_id,
            part,
            inputs_of(part, [place]),
            config,
            clock=ManualClock(),
            producer=producer,
            engines=StoreEngines(tmp_path / str(task_id), None),
            metrics=Metrics(),
            lag_of=lambda _: 0,
        )
        task.initialize()
        task.complete_restoration()
        task.add_records(place, [RawRecord(topic, task_id.partition, 0, 7, b"k", b"v")])
        assert task.process() == 1
        return task

    yield commit
    for task in made:
        task.suspend()
        task.discard()
        task.close()


CONTINUE, FAIL = HandlerResponse.CONTINUE, HandlerResponse.FAIL


@pytest.mark.parametrize("partition", [0, 1])
def test_a_changelog_record_is_of_the_task_with_that_partition(commit_of, partition):
    asked = commit_of(CONTINUE, ProducerRecord("app-counts-changelog", b"k", b"v", 7, partition=partition))
    assert [context.task_id for context in asked] == [TaskId(0, partition)]


def test_the_last_input_record_is_not_taken_for_the_one_that_led_to_it(commit_of):
    (context,) = commit_of(CONTINUE, ProducerRecord("app-counts-changelog", b"k", b"v", 5, partition=1))
    assert (context.topic, context.offset, context.raw_key, context.timestamp) == (None, -1, None, 5)


@pytest.mark.parametrize(("topic", "names"), [("out", ["0_0", "0_1"]), ("copies", ["1_0", "1_1"])])
def test_of_a_topic_that_several_tasks_write_to_it_is_said_that_one_of_them_has_sent_it(commit_of, topic, names):
    with structlog.testing.capture_logs() as lines:
        asked = commit_of(CONTINUE, ProducerRecord(topic, b"k", b"v", 7))
    (line,) = [line for line in lines if "one of these tasks" in line["event"]]
    assert line["topic"] == topic and sorted(line["tasks"]) == names
    assert [str(context.task_id) in names for context in asked] == [True]


def test_an_error_says_so_too(commit_of):
    with pytest.raises(sf.ProductionError, match="topic copies: a record is too large") as caught:
        commit_of(FAIL, ProducerRecord("copies", b"k", b"v", 7))
    (note,) = caught.value.__notes__
    assert note == "the record was sent by one of the tasks 1_1, 1_0; which one is not known"
    assert caught.value.offset is None
