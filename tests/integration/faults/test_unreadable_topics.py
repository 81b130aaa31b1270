"""Topics that are there and give nothing: the app says what, where and why, and does not wait for ever."""

import shutil
import struct

import pytest
from confluent_kafka import Producer
from tests.integration.faults.conftest import COLOURS, KEYS, failure_of, is_one_sentence, wait_for
from tests.integration.faults.test_permissions import TO_CREATE, TO_PURGE, TO_RUN, GuardedApp, GuardedBroker
from tests.integration.streamfleet.kafka_streams.conftest import Bench

import streamfleet as sf
from streamfleet.kafka.client_errors import AccessDeniedError, PartitionUnreadableError
from streamfleet.kafka_streams import ClientState, KafkaStreams
from streamfleet_devbroker import Cluster, ClusterSpec

ALL = len(KEYS) * len(COLOURS)


def stalls(streams):
    return {(stall.topic, stall.cause): count for stall, count in streams.metrics().read_stalls.items()}


def said(lines, event):
    return [line for line in lines if line["event"] == event]


# --- an open transaction ---


def test_a_transaction_of_somebody_else_that_never_ends_does_not_hold_a_restore_up_for_ever(app, logged):
    app.write(ALL)
    app.run_until_counted()
    shutil.rmtree(app.bench.directory / "w")
    settings = {"bootstrap.servers": app.bench.bootstrap, "transactional.id": app.bench.app, "linger.ms": 0}
    stranger = Producer(settings | {"transaction.timeout.ms": 120_000})
    stranger.init_transactions(10)
    stranger.begin_transaction()
    stranger.produce(app.changelog("keys"), b"nothing", b"key", 0)
    assert stranger.flush(10) == 0
    try:
        with app.started(task_timeout_ms=6000) as streams:
            error = failure_of(streams)
            assert stalls(streams) == {(app.changelog("keys"), "open transaction"): 1}
        assert isinstance(error, PartitionUnreadableError) and is_one_sentence(error)
        assert (error.partition.topic, error.partition.partition) == (app.changelog("keys"), 0)
        assert error.position < error.end
        assert f"a transaction has been open since offset {error.end - 1}" in str(error)
        assert len(said(logged, "partition gives nothing more")) == 1
    finally:
        stranger.abort_transaction(10)
    app.run_until_counted()


# --- a damaged record ---


@pytest.fixture(scope="module")
def disk(tmp_path_factory):
    """A broker whose files a test may damage."""
    directory = tmp_path_factory.mktemp("broker")
    with Cluster.start(ClusterSpec(directory)) as cluster:
        yield cluster, directory


@pytest.fixture
def damaged(disk, tmp_path):
    """A function that writes three batches to a topic and damages the second; with a bench on that broker."""
    cluster, directory = disk
    bench = Bench(cluster, tmp_path)

    def damage(topic):
        producer = Producer({"bootstrap.servers": bench.bootstrap, "linger.ms": 0})
        # librdkafka takes what is so many bytes from the start as the damaged batch is long for the next batch: here it finds text,
        # which it refuses; in other places it may end the process.
        for size in (4000, 2000, 2000):
            producer.produce(topic, b"x" * size, b"k", 0)
            assert producer.flush(10) == 0
        (log,) = directory.rglob(f"{topic}-0/00000000000000000000.log")
        with log.open("r+b") as file:
            _, length = struct.unpack(">qi", file.read(12))
            file.seek(length, 1)
            first, length = struct.unpack(">qi", file.read(12))
            assert first == 1
            file.seek(length - 2, 1)
            file.write(b"y")

    return bench, damage


def last_values(topic):
    builder = sf.StreamsBuilder()
    builder.stream(topic).group_by_key().reduce(lambda _, value: value, materialized=sf.Materialized("last"))
    return builder.build()


def in_memory(topic):
    builder = sf.StreamsBuilder()
    builder.global_table(topic, materialized=sf.Materialized("all"))
    return builder.build()


@pytest.mark.parametrize("kind", ["input", "changelog", "global topic"])
def test_a_record_that_the_disk_of_the_broker_has_damaged_is_named_at_once(damaged, kind, logged):
    bench, damage = damaged
    source = bench.topic("in", 1)
    topic = f"{bench.app}-last-changelog" if kind == "changelog" else source
    topology = in_memory(source) if kind == "global topic" else last_values(source)
    if kind == "changelog":
        with bench.running(topology):
            pass
    damage(topic)
    with KafkaStreams(topology, bench.config(worker="another")) as streams:  # with the task time-out of five minutes
        try:
            streams.start()
            error = failure_of(streams)
        except sf.StreamsError as at_once:
            error = at_once
        assert stalls(streams) == {(topic, "_BAD_MSG"): 1}
        assert not sum(counts.corrupted_tasks for counts in streams.metrics().threads.values())
    assert isinstance(error, PartitionUnreadableError) and is_one_sentence(error)
    assert str(error).startswith(f"{kind} {topic}-0 gives nothing from offset 1 of 3 on")
    assert "failed CRC32C check" in str(error) and "damaged on the broker's disk" in str(error)
    assert len(said(logged, "partition cannot be read")) == 1


# --- no permission ---


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    broker = GuardedBroker(tmp_path_factory.mktemp("broker"))
    with broker.cluster:
        yield broker


@pytest.fixture
def guarded_app(guarded, tmp_path):
    app = GuardedApp(guarded, tmp_path)
    app.may(ALLOWED)
    app.write(ALL)
    return app


ALLOWED = [*TO_RUN, TO_PURGE, *TO_CREATE]


def without_reading(topic):
    return [each for each in ALLOWED if (each.name, each.operation.name) != (topic, "READ")]


def test_a_changelog_that_may_no_longer_be_read_ends_who_reads_it_at_once(guarded_app):
    """At the start it is found before anything is done; here it is taken away from a standby."""
    settings = {"num_standby_replicas": 1}  # and the task time-out of five minutes
    with (
        guarded_app.running(worker="first", **settings) as first,
        guarded_app.started(worker="second", **settings) as second,
    ):
        guarded_app.wait_until_counted()
        wait_for(lambda: sum(len(each.threads()[0].standbys) for each in (first, second)) == 2)
        guarded_app.may(without_reading("-keys-changelog"))
        wait_for(lambda: any(each.state is ClientState.ERROR for each in (first, second)))
        (failed,) = [each for each in (first, second) if each.state is ClientState.ERROR]
        assert stalls(failed) == {(guarded_app.changelog("keys"), "TOPIC_AUTHORIZATION_FAILED"): 1}
    assert isinstance(failed.failure, AccessDeniedError) and is_one_sentence(failed.failure)
    assert f"changelog {guarded_app.changelog('keys')}-0 may not be read" in str(failed.failure)


def test_F32_an_input_that_may_no_longer_be_read_while_the_app_runs_ends_it_by_name(guarded_app, logged):
    with guarded_app.running() as streams:
        guarded_app.wait_until_counted()
        guarded_app.wait_for_no_lag()  # or it may be told first that it must not commit either
        guarded_app.may(without_reading("-in"))
        error = failure_of(streams, timeout_seconds=20)
        counted = stalls(streams)
    assert isinstance(error, AccessDeniedError) and is_one_sentence(error), repr(error)
    assert counted == {(guarded_app.source, "TOPIC_AUTHORIZATION_FAILED"): 1}, repr(error)
    assert f"input {guarded_app.source}-0 may not be read" in str(error)
    assert len([line for line in logged if line["log_level"] in ("warning", "error")]) < 5  # no spinning
    guarded_app.may(ALLOWED)
    guarded_app.write(ALL)
    guarded_app.run_until_counted()
