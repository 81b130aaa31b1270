"""Offsets that librdkafka makes up when a broker dies with the request under way."""

from concurrent.futures import Future

import pytest
from confluent_kafka import OFFSET_INVALID
from confluent_kafka.admin import ListOffsetsResultInfo

from streamfleet.ids import TopicPartition
from streamfleet.kafka.admin import KafkaAdmin
from streamfleet.kafka.broker_patience import BrokerPatience
from streamfleet.kafka.client_errors import BrokerUnavailableError
from streamfleet.ports import OffsetKind

PARTITIONS = [TopicPartition("changelog", 0), TopicPartition("changelog", 1)]


class AnsweringClient:
    """Answers each call with the next list of offsets; the last one for ever."""

    def __init__(self, *answers):
        self._answers = list(answers)

    def list_offsets(self, asked, **_):
        offsets = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return {p: _done(ListOffsetsResultInfo(offset, 0, -1)) for p, offset in zip(asked, offsets, strict=True)}

    def list_topics(self, timeout):
        pass

    def poll(self, timeout):
        pass


def _done(result):
    future = Future()
    future.set_result(result)
    return future


def admin_with(*answers):
    admin = KafkaAdmin({"bootstrap.servers": "127.0.0.1:1"}, BrokerPatience(timeout_ms=300))
    admin._client = AnsweringClient(*answers)
    return admin


@pytest.mark.parametrize("kind", OffsetKind)
def test_a_partition_without_an_answer_is_asked_for_again(kind):
    admin = admin_with([20, OFFSET_INVALID], [20, 30])
    assert admin.list_offsets(PARTITIONS, kind) == dict(zip(PARTITIONS, [20, 30], strict=True))


def test_no_answer_at_all_is_no_offset():
    with pytest.raises(BrokerUnavailableError, match="no answer about changelog"):
        admin_with([OFFSET_INVALID] * 2).list_offsets(PARTITIONS, OffsetKind.HIGH_WATERMARK)


def test_a_time_behind_all_records_is_not_taken_for_a_missing_answer():
    admin = admin_with([OFFSET_INVALID, -1], [7, -1], [30])
    assert admin.offsets_since(PARTITIONS, 5) == dict(zip(PARTITIONS, [7, 30], strict=True))
