"""The producer of exactly-once on a real broker: transactions, offsets, and when it must be given up."""

import random
import time
from contextlib import suppress

import pytest

from streamfleet.errors import ConfigError, StreamsError
from streamfleet.ids import TopicPartition
from streamfleet.kafka.client_errors import (
    BrokerUnavailableError,
    FencedProducerError,
    ProducerLostError,
    RecordRefusedError,
    TransactionAbortRequiredError,
    UnknownTransactionOutcomeError,
)
from streamfleet.records import ProducerRecord

WAIT_MS = 20_000
FAR_FUTURE = 2**62


def record(topic, value, *, timestamp=1000, partition: int | None = 0):
    return ProducerRecord(topic, b"k", value, timestamp, (), partition)


class ClockThatJumps:
    def __init__(self, by_ms):
        self.now, self.by_ms = 0, by_ms

    def now_ms(self):
        self.now += self.by_ms
        return self.now


def commit(producer, *records):
    producer.begin()
    for each in records:
        producer.send(each)
    producer.flush(WAIT_MS)
    producer.commit(WAIT_MS)


def values(records):
    return [each.value for each in records]


def test_a_transaction_timeout_that_the_broker_does_not_take_is_an_error_of_the_configuration(clients):
    producer = clients.transactional(init=False, **{"producer.transaction.timeout.ms": 2_000_000})
    with pytest.raises(ConfigError, match=r"does not take transaction.timeout.ms") as caught:
        producer.init(WAIT_MS)
    assert "transaction.max.timeout.ms" in str(caught.value)
    assert not producer.is_usable


def test_committed_records_are_read_and_aborted_ones_are_not(clients, new_topic, read_topic):
    topic = new_topic()
    producer = clients.transactional()
    producer.begin()
    producer.send(record(topic, b"aborted"))
    producer.flush(WAIT_MS)
    producer.abort(WAIT_MS)
    commit(producer, record(topic, b"committed"))
    assert values(read_topic(topic, 1)) == [b"committed"]
    assert producer.is_usable


def test_a_transaction_is_not_slowed_down_by_lingering(clients, new_topic):
    topic = new_topic()
    producer = clients.transactional(**{"producer.linger.ms": 8000})
    began = time.monotonic()
    commit(producer, record(topic, b"v"))
    assert time.monotonic() - began < 4


def test_the_next_owner_of_a_transactional_id_has_a_higher_epoch(clients, new_topic):
    first = clients.transactional("owner-by-turns")
    second = clients.transactional("owner-by-turns")
    assert first.identity.transactional_id == second.identity.transactional_id == "owner-by-turns"
    assert first.identity.producer_id == second.identity.producer_id
    assert second.identity.epoch > first.identity.epoch


def test_the_offset_of_the_last_record_is_exact_in_every_tracked_partition(clients, new_topic, read):
    changelog, output = new_topic(3), new_topic()
    producer = clients.transactional(tracked=[changelog])
    dice = random.Random(11)
    last: dict[bytes, TopicPartition] = {}
    told: dict[bytes, int] = {}
    count = 0
    for number in range(30):
        producer.begin()
        for step in range(dice.randrange(1, 8)):
            partition = TopicPartition(changelog, dice.randrange(3))
            value = f"{number}.{step}".encode()
            last = {key: at for key, at in last.items() if at != partition or key in told} | {value: partition}
            producer.send(record(changelog, value, partition=partition.partition))
            producer.send(record(output, b"noise"))
            count += 1
        producer.flush(WAIT_MS)
        offsets = producer.last_offsets()
        untold = {value: at for value, at in last.items() if value not in told}
        assert offsets.keys() == set(untold.values())
        told |= {value: offsets[at] for value, at in untold.items()}
        producer.commit(WAIT_MS)
    consumer = clients.consumer("restore")
    consumer.assign({TopicPartition(changelog, number): 0 for number in range(3)})
    found = {each.value: each.offset for each in read(consumer, count)}
    assert told == {value: found[value] for value in told}


def test_records_held_back_for_their_offset_keep_their_order(clients, new_topic, read_topic):
    topic = new_topic()
    producer = clients.transactional(tracked=[topic])
    sent = [str(number).encode() for number in range(50)]
    producer.begin()
    for number, value in enumerate(sent):
        producer.send(record(topic, value))
        if number % 20 == 19:
            producer.flush(WAIT_MS)
    producer.flush(WAIT_MS)
    producer.commit(WAIT_MS)
    assert values(read_topic(topic, 50)) == sent
    assert producer.last_offsets() == {TopicPartition(topic, 0): 49}


def test_an_abort_forgets_what_was_held_back(clients, new_topic, read_topic):
    topic = new_topic()
    producer = clients.transactional(tracked=[topic])
    producer.begin()
    producer.send(record(topic, b"aborted"))
    producer.abort(WAIT_MS)
    commit(producer, record(topic, b"committed"))
    assert values(read_topic(topic, 1)) == [b"committed"]


def test_a_commit_before_the_flush_is_refused(clients, new_topic):
    topic = new_topic()
    producer = clients.transactional(tracked=[topic])
    producer.begin()
    producer.send(record(topic, b"v"))
    with pytest.raises(StreamsError, match="call flush before commit"):
        producer.commit(WAIT_MS)


def test_a_transaction_knows_whether_it_has_records(clients, new_topic):
    topic = new_topic()
    producer = clients.transactional()
    producer.begin()
    assert not producer.has_sent
    producer.commit(WAIT_MS)
    producer.begin()
    producer.send(record(topic, b"v"))
    assert producer.has_sent
    producer.abort(WAIT_MS)
    producer.begin()
    assert not producer.has_sent


def test_a_fenced_producer_says_so_whatever_is_asked_of_it(clients, new_topic):
    topic = new_topic()
    old = clients.transactional("fenced")
    old.begin()
    old.send(record(topic, b"v"))
    old.flush(WAIT_MS)
    new = clients.transactional("fenced")
    old.send(record(topic, b"w"))
    with pytest.raises(FencedProducerError):
        old.flush(WAIT_MS)  # librdkafka raises what is not even an exception here
    assert not old.is_usable
    for ask in (old.begin, lambda: old.commit(1000), lambda: old.abort(1000), lambda: old.send(record(topic, b"x"))):
        with pytest.raises(ProducerLostError):
            ask()
    commit(new, record(topic, b"new"))


def test_a_fenced_commit_is_told(clients, new_topic, read_topic):
    topic = new_topic()
    old = clients.transactional("fenced-at-commit")
    old.begin()
    old.send(record(topic, b"old"))
    old.flush(WAIT_MS)
    new = clients.transactional("fenced-at-commit")
    with pytest.raises(FencedProducerError):
        old.commit(WAIT_MS)
    commit(new, record(topic, b"new"))
    assert values(read_topic(topic, 1)) == [b"new"]


def test_a_record_refused_by_the_broker_costs_the_transaction_and_the_producer(clients, new_topic, read_topic):
    topic = new_topic()
    producer = clients.transactional("refused")
    producer.begin()
    producer.send(record(topic, b"good"))
    producer.send(record(topic, b"bad", timestamp=FAR_FUTURE))
    producer.flush(WAIT_MS)
    with pytest.raises(TransactionAbortRequiredError, match="INVALID_TIMESTAMP"):
        producer.commit(WAIT_MS)
    producer.abort(WAIT_MS)
    assert not producer.is_usable
    commit(clients.transactional("refused"), record(topic, b"again"))
    assert values(read_topic(topic, 1)) == [b"again"]


def test_a_replay_with_single_records_finds_the_one_that_is_refused(clients, new_topic):
    topic = new_topic()
    producer = clients.transactional(blame=True)
    bad = record(topic, b"bad", timestamp=FAR_FUTURE)
    producer.begin()
    producer.send(record(topic, b"good"))
    producer.flush(WAIT_MS)
    producer.send(bad)
    producer.flush(WAIT_MS)
    (failure,) = producer.take_failures()
    assert failure.record == bad
    assert isinstance(failure.error, RecordRefusedError)


def test_the_refused_record_is_found_at_once_although_others_wait_behind_it(clients, new_topic):
    """librdkafka keeps those until the transaction's time-out, and a flush with them: ten seconds, and nothing to wait for."""
    topic = new_topic(max_message_bytes=4000)
    producer = clients.transactional(blame=True)
    bad = record(topic, bytes(8000))
    producer.begin()
    began = time.monotonic()
    with suppress(TransactionAbortRequiredError):
        producer.send(bad)
        for _ in range(50):
            producer.send(record(topic, b"behind it"))
        producer.flush(WAIT_MS)
    first, *_ = producer.take_failures()
    assert first.record == bad and isinstance(first.error, RecordRefusedError)
    assert time.monotonic() - began < 5


def test_an_oversize_record_is_refused_and_the_transaction_lives_on(clients, new_topic, read_topic):
    changelog, output = new_topic(max_message_bytes=5000), new_topic(max_message_bytes=5000)
    producer = clients.transactional(tracked=[changelog], limits={changelog: 5000, output: 5000})
    producer.begin()
    for topic in (changelog, output):
        producer.send(record(topic, b"before"))
        with pytest.raises(RecordRefusedError, match="MSG_SIZE_TOO_LARGE"):
            producer.send(record(topic, bytes(4990)))
        producer.send(record(topic, b"after"))
    producer.flush(WAIT_MS)
    assert producer.last_offsets() == {TopicPartition(changelog, 0): 1}
    producer.commit(WAIT_MS)
    assert values(read_topic(changelog, 2)) == values(read_topic(output, 2)) == [b"before", b"after"]


@pytest.mark.parametrize("end", ["commit", "abort"])
def test_an_end_without_an_answer_is_an_unknown_outcome(clients, new_topic, read, frozen_broker, end):
    topic = new_topic()
    producer = clients.transactional(f"unknown-{end}")
    producer.begin()
    producer.send(record(topic, b"perhaps"))
    producer.flush(WAIT_MS)
    with frozen_broker(), pytest.raises(UnknownTransactionOutcomeError):
        getattr(producer, end)(300)
    assert not producer.is_usable
    with pytest.raises(ProducerLostError, match="must not be used again"):
        producer.begin()
    commit(clients.transactional(f"unknown-{end}"), record(topic, b"certain"))
    consumer = clients.consumer()
    consumer.assign({TopicPartition(topic, 0): 0})
    found = values(read(consumer, 1))
    while b"certain" not in found:
        found += values(read(consumer, 1))
    assert found == [b"certain"] or (end == "commit" and found == [b"perhaps", b"certain"])


def test_a_slow_commit_is_good_but_the_last_of_its_producer(clients, new_topic, read_topic):
    topic = new_topic()
    producer = clients.transactional(**{"producer.socket.timeout.ms": 10_000})
    producer.begin()
    producer.send(record(topic, b"v"))
    producer.flush(WAIT_MS)
    producer._clock = ClockThatJumps(by_ms=5001)
    producer.commit(WAIT_MS)
    assert not producer.is_usable
    assert values(read_topic(topic, 1)) == [b"v"]


def test_an_init_without_an_answer_leaves_nothing_to_use(clients, frozen_broker):
    producer = clients.transactional(init=False)
    with frozen_broker(), pytest.raises(BrokerUnavailableError):
        producer.init(300)
    assert not producer.is_usable


def test_nothing_is_sent_outside_of_a_transaction(clients, new_topic):
    producer = clients.transactional()
    with pytest.raises(StreamsError, match="the producer is ready, not in transaction"):
        producer.send(record(new_topic(), b"v"))


def test_a_tracked_record_must_name_its_partition(clients, new_topic):
    topic = new_topic()
    producer = clients.transactional(tracked=[topic])
    producer.begin()
    with pytest.raises(StreamsError, match="names no partition"):
        producer.send(record(topic, b"v", partition=None))
