"""The producers over a scripted librdkafka: waiting, caching, errors, and when a transactional producer is lost."""

import json
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException
from hypothesis import given
from hypothesis import strategies as st

from streamfleet.errors import ConfigError, StreamsError
from streamfleet.kafka.client_errors import (
    AccessDeniedError,
    BrokerUnavailableError,
    FencedProducerError,
    ProducerLostError,
    RecordRefusedError,
    TransactionAbortRequiredError,
    UnknownTransactionOutcomeError,
)
from streamfleet.kafka.client_failures import client_error
from streamfleet.kafka.patience import NS_PER_MS
from streamfleet.kafka.producer import PlainProducer
from streamfleet.kafka.producer_client import FULL_QUEUE_TIMEOUT_MS, PARTITION_COUNT_AGE_MS, ProducerClient
from streamfleet.kafka.tenure import Tenure
from streamfleet.kafka.transactional_producer import KafkaTransactionalProducer
from streamfleet.records import ProducerRecord

RECORD = ProducerRecord("t", b"k", b"v", 1000, (), 0)


class Clock:
    now = 0

    def now_ms(self):
        return self.now

    def pause_ms(self, milliseconds):
        self.now += milliseconds


class Librdkafka:
    """Does what `script` says for a method, else nothing. Polling takes its time on the clock."""

    def __init__(self, clock):
        self.clock, self.produced, self.calls, self.script, self.stats_cb = clock, [], [], {}, None

    def make(self, _kind, _settings, **callbacks):
        self.stats_cb = callbacks.get("stats_cb")
        return self

    def produce(self, *arguments):
        self._call("produce")
        self.produced.append(arguments)

    def poll(self, seconds):
        self.clock.now += int(seconds * 1000)
        self._call("poll")
        return 0

    def flush(self, seconds):
        left = self._call("flush") or 0
        self.clock.now += int(seconds * 1000) if left else 0
        return left

    def list_topics(self, topic, _seconds):
        return self._call("list_topics")

    def init_transactions(self, _seconds):
        self._call("init")
        self.tell(7, 3)

    def begin_transaction(self):
        self._call("begin")

    def commit_transaction(self, _seconds):
        self._call("commit")

    def abort_transaction(self, _seconds):
        self._call("abort")

    def tell(self, producer_id, epoch):
        self.stats_cb(json.dumps({"eos": {"producer_id": producer_id, "producer_epoch": epoch}, "more": 1}))

    def _call(self, name):
        self.calls.append(name)
        return self.script[name]() if name in self.script else None


def raising(code, **flags):
    def call():
        raise KafkaException(KafkaError(code, "the reason", **flags))

    return call


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def librdkafka(clock, monkeypatch):
    client = Librdkafka(clock)
    monkeypatch.setattr("streamfleet.kafka.producer_client.make_client", client.make)
    return client


@pytest.fixture
def client(librdkafka, clock):
    return ProducerClient({"message.max.bytes": 3000}, client_error, {"t": 1061, "large": 90_000}, clock=clock)


@pytest.fixture
def transactional(librdkafka, clock):
    producer = KafkaTransactionalProducer({"transactional.id": "t"}, tracked=["log"], clock=clock)
    producer.init(1000)
    producer.begin()
    return producer


def test_a_transaction_timeout_that_the_broker_does_not_take_is_an_error_of_the_configuration(librdkafka, clock):
    librdkafka.script["init"] = raising(KafkaError.INVALID_TRANSACTION_TIMEOUT, fatal=True)
    producer = KafkaTransactionalProducer({"transactional.id": "t"}, clock=clock)
    with pytest.raises(ConfigError, match=r"at most transaction\.max\.timeout\.ms"):
        producer.init(1000)
    assert not producer.is_usable


def with_timestamp(timestamp):
    return ProducerRecord("t", b"k", b"v", timestamp, (), 0)


@given(st.one_of(st.none(), st.integers(-(2**70), 2**70)))
def test_no_timestamp_is_changed_silently(timestamp):
    """Property over all timestamps: passed on as it is, moved from 0 to 1 and counted, or refused."""
    with pytest.MonkeyPatch.context() as patch:
        raw = Librdkafka(Clock())
        patch.setattr("streamfleet.kafka.producer_client.make_client", raw.make)
        moved: list[int] = []
        client = ProducerClient({}, client_error, {}, on_moved=lambda: moved.append(1))
        possible = timestamp is None or 0 <= timestamp < 2**63
        if not possible:
            for refuse in (client.check, lambda record: client.produce(record, None)):
                with pytest.raises(RecordRefusedError):
                    refuse(with_timestamp(timestamp))
            assert raw.produced == []
            return
        client.check(with_timestamp(timestamp))
        client.produce(with_timestamp(timestamp), None)
        # librdkafka takes 0 as "now": only a record without a time may be sent so.
        assert raw.produced[0][6] == {None: 0, 0: 1}.get(timestamp, timestamp)
        assert moved == [1] * (timestamp == 0)


def test_a_full_queue_is_outwaited(client, librdkafka):
    attempts = iter([BufferError, BufferError, None])

    def full():
        if (error := next(attempts)) is not None:
            raise error

    librdkafka.script["produce"] = full
    client.produce(RECORD, None)
    assert librdkafka.calls == ["produce", "poll", "produce", "poll", "produce"]


def test_a_queue_that_stays_full_is_an_absent_broker(client, librdkafka, clock):
    def full():
        raise BufferError

    librdkafka.script["produce"] = full
    with pytest.raises(BrokerUnavailableError, match="no room for a record for topic t"):
        client.produce(RECORD, None)
    assert clock.now == FULL_QUEUE_TIMEOUT_MS


def test_partition_counts_are_asked_once_a_minute(client, librdkafka, clock):
    counts = iter([2, 3])
    librdkafka.script["list_topics"] = lambda: SimpleNamespace(
        topics={"t": SimpleNamespace(error=None, partitions=dict.fromkeys(range(next(counts))))}
    )
    assert [client.partition_count("t") for _ in range(3)] == [2, 2, 2]
    clock.now += PARTITION_COUNT_AGE_MS
    assert [client.partition_count("t") for _ in range(3)] == [3, 3, 3]


def test_a_record_as_large_as_the_limit_is_accepted_and_one_byte_more_is_not(client):
    client.check(ProducerRecord("t", bytes(464), bytes(500), 1, ()))
    with pytest.raises(RecordRefusedError, match="a record of 965 bytes for topic t was refused"):
        client.check(ProducerRecord("t", bytes(465), bytes(500), 1, ()))
    with pytest.raises(RecordRefusedError):
        client.check(ProducerRecord("t", bytes(464), bytes(500), 1, (("h", b""),)))


@pytest.mark.parametrize("end", ["commit", "abort"])
@pytest.mark.parametrize(
    ("raised", "expected", "usable"),
    [
        (raising(KafkaError._TIMED_OUT, retriable=True), UnknownTransactionOutcomeError, False),
        (raising(KafkaError._TRANSPORT), UnknownTransactionOutcomeError, False),
        (raising(KafkaError._CONFLICT), UnknownTransactionOutcomeError, False),
        (raising(KafkaError.UNKNOWN), UnknownTransactionOutcomeError, False),
        (raising(KafkaError._FENCED, fatal=True), FencedProducerError, False),
        (raising(KafkaError.INVALID_PRODUCER_EPOCH), FencedProducerError, False),
        (raising(KafkaError._FATAL), ProducerLostError, False),
        (raising(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, fatal=True), ProducerLostError, False),
        (raising(KafkaError.INVALID_TIMESTAMP, txn_requires_abort=True), TransactionAbortRequiredError, True),
    ],
)
def test_how_the_end_of_a_transaction_can_fail(transactional, librdkafka, end, raised, expected, usable):
    librdkafka.script[end] = raised
    with pytest.raises(expected) as caught:
        getattr(transactional, end)(1000)
    assert type(caught.value) is expected
    assert (transactional.is_usable, transactional.in_transaction) == (usable, usable)


def test_after_a_failed_transaction_its_abort_is_the_last_call(transactional, librdkafka):
    librdkafka.script["commit"] = raising(KafkaError.INVALID_TIMESTAMP, txn_requires_abort=True)
    with pytest.raises(TransactionAbortRequiredError):
        transactional.commit(1000)
    transactional.abort(1000)
    assert not transactional.is_usable


def test_an_ordinary_abort_keeps_the_producer(transactional):
    transactional.abort(1000)
    assert transactional.is_usable
    transactional.begin()


def test_a_send_into_a_failed_transaction_asks_for_the_abort(transactional, librdkafka):
    librdkafka.script["produce"] = raising(KafkaError._STATE)
    with pytest.raises(TransactionAbortRequiredError):
        transactional.send(RECORD)


def test_a_flush_that_makes_no_end_goes_on_while_the_transaction_is_good(transactional, librdkafka, clock):
    librdkafka.script["begin"] = raising(KafkaError._STATE)
    librdkafka.script["flush"] = lambda: 3 if clock.now < 1500 else 0
    transactional.flush(30_000)
    assert 1500 <= clock.now < 2000
    transactional.commit(1000)
    assert transactional.is_usable


def test_a_flush_without_an_answer_ends_with_its_time(transactional, librdkafka, clock):
    librdkafka.script["begin"] = raising(KafkaError._STATE)
    librdkafka.script["flush"] = lambda: 3
    with pytest.raises(BrokerUnavailableError):
        transactional.flush(1000)
    assert clock.now == 1000


def test_a_flush_of_a_transaction_that_has_failed_does_not_wait_for_its_records(transactional, librdkafka, clock):
    librdkafka.script["begin"] = raising(KafkaError.MSG_SIZE_TOO_LARGE, txn_requires_abort=True)
    librdkafka.script["flush"] = lambda: 3
    with pytest.raises(TransactionAbortRequiredError, match="MSG_SIZE_TOO_LARGE"):
        transactional.flush(30_000)
    assert clock.now < 1000


def test_a_producer_that_blames_waits_a_moment_for_the_record_it_was(librdkafka, clock):
    settings = {"transactional.id": "t"}
    producer = KafkaTransactionalProducer(settings, blame_single_records=True, clock=clock)
    producer.init(1000)
    producer.begin()
    producer.send(RECORD)
    report = librdkafka.produced[0][4]
    librdkafka.script["produce"] = raising(KafkaError._STATE)
    with pytest.raises(TransactionAbortRequiredError):
        producer.send(RECORD)
    librdkafka.script["poll"] = lambda: report(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE), None)
    (failure,) = producer.take_failures()
    assert failure.record == RECORD and isinstance(failure.error, RecordRefusedError)
    librdkafka.script.pop("poll")
    assert producer.take_failures() == []


def test_a_missing_permission_for_the_transactional_id_is_told_as_such(librdkafka, clock):
    producer = KafkaTransactionalProducer({"transactional.id": "t"}, clock=clock)
    librdkafka.script["init"] = raising(KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, fatal=True)
    with pytest.raises(AccessDeniedError):
        producer.init(1000)
    assert not producer.is_usable


def test_an_epoch_that_librdkafka_changed_by_itself_ends_the_producer(transactional, librdkafka):
    identity = transactional.identity
    librdkafka.tell(7, 3)
    assert transactional.is_usable
    librdkafka.tell(7, 4)
    assert not transactional.is_usable
    assert transactional.identity == identity


def test_statistics_without_an_identity_say_nothing(transactional, librdkafka):
    librdkafka.tell(-1, -1)
    librdkafka.stats_cb("{}")
    assert transactional.is_usable


def test_without_an_identity_init_gives_up_at_its_deadline(librdkafka, clock):
    producer = KafkaTransactionalProducer({"transactional.id": "t"}, clock=clock)
    librdkafka.tell = lambda *_: None
    with pytest.raises(BrokerUnavailableError, match="did not tell its producer id"):
        producer.init(1000)
    assert not producer.is_usable
    with pytest.raises(StreamsError, match="no identity yet; call init first"):
        producer.identity  # noqa: B018


def test_only_the_last_record_of_a_tracked_partition_has_a_callback(transactional, librdkafka):
    for number in range(3):
        transactional.send(ProducerRecord("log", b"k", str(number).encode(), 1, (), 0))
    transactional.send(ProducerRecord("log", b"k", b"other", 1, (), 1))
    transactional.send(RECORD)
    transactional.flush(1000)
    sent = [(arguments[0], arguments[1], arguments[4] is not None) for arguments in librdkafka.produced]
    assert sent[:3] == [("log", b"0", False), ("log", b"1", False), ("t", b"v", False)]
    assert sorted(sent[3:]) == [("log", b"2", True), ("log", b"other", True)]


def test_a_flush_without_room_loses_no_record_that_was_held_back(transactional, librdkafka):
    def full():
        raise BufferError

    transactional.send(ProducerRecord("log", b"k", b"0", 1, (), 0))
    librdkafka.script["produce"] = full
    with pytest.raises(BrokerUnavailableError):
        transactional.flush(1000)
    del librdkafka.script["produce"]
    transactional.flush(1000)
    assert [arguments[1] for arguments in librdkafka.produced] == [b"0"]


def test_closing_twice_is_harmless_and_ends_the_producer(transactional):
    transactional.close()
    transactional.close()
    assert not transactional.is_usable
    with pytest.raises(ProducerLostError):
        transactional.begin()


# --- at least once ---


@pytest.fixture
def tenure():
    return Tenure(1_000)


@pytest.fixture
def plain(librdkafka, clock, tenure):
    return PlainProducer({}, now_ns=lambda: clock.now * NS_PER_MS, tenure=tenure, reserve_ms=500)


def test_nothing_is_sent_when_others_may_run_the_tasks_by_now(plain, librdkafka, clock, tenure):
    plain.send(RECORD)
    clock.now = 500
    with pytest.raises(BrokerUnavailableError, match="was not heard of"):
        plain.send(RECORD)
    tenure.until_ms = 5_000  # the group answers again
    plain.send(RECORD)
    assert len(librdkafka.produced) == 2


def test_nothing_is_sent_after_the_membership_gave_up_the_tasks_however_long_it_had_them_for(plain, librdkafka, tenure):
    tenure.until_ms = 30_000
    plain.send(RECORD)
    tenure.until_ms = 0  # revoked, by another thread
    with pytest.raises(BrokerUnavailableError, match="has left its group"):
        plain.send(RECORD)
    assert len(librdkafka.produced) == 1


def test_a_plain_producer_that_is_lost_goes_on_with_another_client(plain, librdkafka):
    librdkafka.script["produce"] = raising(KafkaError._FATAL, fatal=True)
    with pytest.raises(ProducerLostError):
        plain.send(RECORD)
    assert not plain.is_usable
    del librdkafka.script["produce"]
    plain.renew()
    assert plain.is_usable
    plain.send(RECORD)


def refused_together(plain, librdkafka, count):
    """Records that the broker refuses as one batch."""
    records = [ProducerRecord("t", b"k", b"%d" % number, 1, (), 0) for number in range(count)]
    for record in records:
        plain.send(record)
    for arguments in librdkafka.produced:
        arguments[4](KafkaError(KafkaError.INVALID_RECORD), None)
    librdkafka.produced.clear()
    return [record.value for record in records]


def test_records_refused_with_their_batch_are_sent_again_one_by_one(plain, librdkafka):
    values = refused_together(plain, librdkafka, 3)
    librdkafka.calls.clear()
    plain.flush(1000)
    assert [arguments[1] for arguments in librdkafka.produced] == values
    assert librdkafka.calls == ["flush", *["produce", "flush"] * 3]
    assert plain.take_failures() == []


def test_records_refused_with_their_batch_are_not_forgotten_when_the_broker_falls_silent_meanwhile(
    plain, librdkafka, tenure
):
    tenure.until_ms = 30_000
    values = refused_together(plain, librdkafka, 3)
    answers = iter([0, 0, 1])  # the second of them is not delivered in time
    librdkafka.script["flush"] = lambda: next(answers)
    with pytest.raises(BrokerUnavailableError):
        plain.flush(1000)
    librdkafka.script["flush"] = lambda: 0
    plain.flush(1000)
    assert [arguments[1] for arguments in librdkafka.produced] == values


def test_records_refused_with_their_batch_are_not_sent_again_when_others_may_run_the_tasks(plain, librdkafka, tenure):
    refused_together(plain, librdkafka, 3)
    tenure.until_ms = 0
    with pytest.raises(BrokerUnavailableError, match="held back"):
        plain.flush(1000)
    assert librdkafka.produced == []
