"""The admin client on a real broker: topics, settings, offsets, and a broker that is not there."""

import shutil
import tempfile
import time
from pathlib import Path

import pytest

from streamfleet.ids import TopicPartition
from streamfleet.kafka.admin import KafkaAdmin
from streamfleet.kafka.broker_patience import BrokerPatience
from streamfleet.kafka.client_errors import BrokerUnavailableError, KafkaClientError
from streamfleet.kafka.client_settings import ClientSettings
from streamfleet.kafka.outage import Outage
from streamfleet.metrics import OutageCounts
from streamfleet.ports import OffsetKind, TopicToCreate
from streamfleet.records import ProducerRecord
from streamfleet_devbroker.cluster import Cluster, ClusterSpec
from streamfleet_devbroker.ports import free_ports


def admin_of(port, patience):
    settings = ClientSettings.from_mapping({"bootstrap.servers": f"127.0.0.1:{port}"})
    return KafkaAdmin(settings.admin(client_id="a"), patience)


def test_topics_are_described_with_id_and_partitions_and_missing_ones_left_out(admin, new_topic):
    one, two = new_topic(3), new_topic()
    found = admin.describe_topics([one, two, "no-such-topic"])
    assert {name: topic.partitions for name, topic in found.items()} == {one: 3, two: 1}
    assert len({topic.topic_id for topic in found.values()}) == 2
    assert admin.describe_topics([]) == {}


def test_a_topic_that_was_made_anew_has_another_id(admin, new_topic):
    name = new_topic()
    before = admin.describe_topics([name])[name]
    assert admin.delete_topics([name, "no-such-topic"]) == {name}
    deadline = time.monotonic() + 20
    while not admin.create_topics([TopicToCreate(name, 1, {})]):
        assert time.monotonic() < deadline
    assert admin.describe_topics([name])[name].topic_id != before.topic_id


def test_creating_a_topic_again_leaves_it_as_it_is(admin, new_topic):
    name = new_topic(2)
    assert admin.create_topics([TopicToCreate(name, 5, {})]) == frozenset()
    assert admin.describe_topics([name])[name].partitions == 2


def test_settings_are_created_and_read_back_with_defaults(admin, new_topic):
    name = new_topic(cleanup_policy="compact", segment_bytes=1048576)
    found = admin.describe_configs([name, "no-such-topic"])
    assert found.keys() == {name}
    assert (found[name]["cleanup.policy"], found[name]["segment.bytes"]) == ("compact", "1048576")
    assert found[name]["max.message.bytes"] == "1048588"


def test_a_setting_that_does_not_exist_is_an_error_with_its_reason(admin):
    with pytest.raises(KafkaClientError, match="Unknown topic config name: no.such.setting") as caught:
        admin.create_topics([TopicToCreate("never", 1, {"no.such.setting": "1"})])
    assert caught.value.code == "INVALID_CONFIG"
    assert "never" not in admin.topic_names()


def test_partitions_on_brokers_without_a_rack_have_none_and_missing_topics_are_left_out(admin, new_topic):
    topic = new_topic(2)
    assert admin.partition_racks([topic, "no-such-topic"]) == {TopicPartition(topic, n): frozenset() for n in (0, 1)}


def test_another_patience_shares_the_client_and_is_closed_by_itself(admin, new_topic):
    topic = new_topic()
    hasty = admin.with_patience(BrokerPatience(timeout_ms=2_000))
    assert hasty.describe_topics([topic]).keys() == {topic}
    hasty.close()
    assert admin.describe_topics([topic]).keys() == {topic}


def test_the_ends_of_a_partition_with_an_open_transaction_differ(clients, admin, new_topic, fill):
    topic = new_topic()
    partition = TopicPartition(topic, 0)
    fill(topic, [b"v"] * 6)
    admin.delete_records({partition: 2})
    producer = clients.transactional()
    producer.begin()
    producer.send(ProducerRecord(topic, b"k", b"open", 1000, (), 0))
    producer.flush(20_000)
    offsets = {kind: admin.list_offsets([partition], kind)[partition] for kind in OffsetKind}
    assert offsets == {OffsetKind.EARLIEST: 2, OffsetKind.HIGH_WATERMARK: 7, OffsetKind.LAST_STABLE: 6}


def test_offsets_are_found_by_time_and_the_end_stands_for_what_is_not_there_yet(clients, admin, new_topic):
    topic = new_topic(2)
    producer = clients.producer()
    for timestamp in (1000, 2000, 2000, 3000):
        producer.send(ProducerRecord(topic, b"k", b"v", timestamp, (), 0))
    producer.flush(20_000)
    full, empty = TopicPartition(topic, 0), TopicPartition(topic, 1)
    found = [admin.offsets_since([full, empty], since_ms) for since_ms in (0, 1001, 2000, 3000, 3001)]
    assert [each[full] for each in found] == [0, 1, 1, 3, 4]
    assert {each[empty] for each in found} == {0}
    assert admin.offsets_since([], 0) == {}


def test_offsets_of_an_unknown_topic_are_an_error(admin):
    with pytest.raises(KafkaClientError, match="no-such-topic"):
        admin.list_offsets([TopicPartition("no-such-topic", 0)], OffsetKind.EARLIEST)


def test_the_high_watermark_after_a_flush_is_the_last_write_plus_one(clients, admin, new_topic):
    topic = new_topic()
    partition = TopicPartition(topic, 0)
    producer = clients.producer()
    for number in range(1, 51):
        producer.send(ProducerRecord(topic, b"k", b"v", 1000, (), 0))
        producer.flush(20_000)
        assert admin.list_offsets([partition], OffsetKind.HIGH_WATERMARK) == {partition: number}


def test_deleting_records_says_where_the_log_begins_now(admin, new_topic, fill):
    topic = new_topic()
    partition = TopicPartition(topic, 0)
    fill(topic, [b"v"] * 10)
    assert admin.delete_records({partition: 4}) == {partition: 4}
    assert admin.delete_records({partition: 3}) == {partition: 4}
    with pytest.raises(KafkaClientError) as caught:
        admin.delete_records({partition: 11})
    assert caught.value.code == "OFFSET_OUT_OF_RANGE"


def test_records_of_a_compacted_topic_cannot_be_deleted(admin, new_topic, fill):
    topic = new_topic(cleanup_policy="compact")
    fill(topic, [b"v"] * 2)
    with pytest.raises(KafkaClientError) as caught:
        admin.delete_records({TopicPartition(topic, 0): 1})
    assert caught.value.code == "POLICY_VIOLATION"


@pytest.mark.parametrize(
    "ask",
    [
        lambda admin: admin.topic_names(),
        lambda admin: admin.describe_topics(["t"]),
        lambda admin: admin.create_topics([TopicToCreate("t", 1, {})]),
        lambda admin: admin.list_offsets([TopicPartition("t", 0)], OffsetKind.EARLIEST),
    ],
)
def test_an_absent_broker_is_waited_for_until_the_deadline(ask, monkeypatch):
    monkeypatch.setattr("streamfleet.kafka.admin.ATTEMPT_TIMEOUT_MS", 300)
    counts = OutageCounts()
    admin = admin_of(free_ports(1)[0], BrokerPatience(timeout_ms=1000, outage=Outage(counts)))
    with pytest.raises(BrokerUnavailableError, match="got no answer within 1000 ms, in [2-5] attempts"):
        ask(admin)
    assert counts.outages == 1
    admin.close()


def test_a_broker_that_comes_late_is_found():
    directory, port = Path(tempfile.mkdtemp()), free_ports(1)[0]
    started: list[Cluster] = []

    class StartsCluster(Outage):
        """The cluster is started as soon as somebody waits for it."""

        def silent(self, *_: object, **__: object) -> None:
            if not started:
                started.append(Cluster.start(ClusterSpec(directory, 1, port=port)))

    admin = admin_of(port, BrokerPatience(timeout_ms=60_000, outage=StartsCluster()))
    try:
        assert admin.create_topics([TopicToCreate("late", 2, {})]) == {"late"}
    finally:
        admin.close()
        for cluster in started:
            cluster.stop()
        shutil.rmtree(directory, ignore_errors=True)
