"""Apps whose group the broker plans (`group.protocol=streams`): the same results, and what is different."""

import time

import pytest

import streamfleet as sf
from streamfleet.kafka.client_errors import InternalTopicLostError
from streamfleet.kafka.connection import TcpConnector
from streamfleet.kafka.coordinator import CoordinatorLine
from streamfleet.kafka.error_codes import ErrorCode
from streamfleet.kafka.errors import GroupTopicsError, TopologyRefusedError
from streamfleet.kafka.patience import MonotonicClock
from streamfleet.kafka.streams_group.group_settings import set_group_settings
from streamfleet.kafka_streams import ClientState, KafkaStreams, UncaughtResponse

KEYS = [f"k{i}" for i in range(40)]
QUICK = {"streams.session.timeout.ms": "3000", "streams.heartbeat.interval.ms": "200"}


class StreamsGroupBench:
    """A counting app whose group has short time-outs."""

    def __init__(self, bench, partitions=4):
        self.bench = bench
        clock = MonotonicClock()
        line = CoordinatorLine(TcpConnector({"bootstrap.servers": bench.bootstrap}, clock), clock, bench.app)
        assert line.ask(set_group_settings(bench.app, QUICK), clock.now_ms() + 20_000).code is ErrorCode.NONE
        line.close()
        self.source, self.counts = bench.topic("in", partitions), bench.topic("counts", partitions)
        self.total = 0

    def topology(self, store="counts", poisoned=False):
        def read(value):
            if poisoned and value == "poison":
                raise ValueError("poison")
            return value

        builder = sf.StreamsBuilder()
        words = builder.stream(self.source).map_values(read).group_by(lambda key, value: key, name="words")
        words.count(store=store).to_stream().to(self.counts, value_serde=sf.serdes.long())
        return builder.build()

    def config(self, worker="w", **settings):
        chosen = {
            "session_timeout_ms": 45_000,
            "heartbeat_interval_ms": 500,
            "group_protocol": "streams",
            "processing_guarantee": "exactly_once_v2",
        }
        return self.bench.config(worker, **(chosen | settings))

    def running(self, worker="w", **settings):
        return self.bench.running(self.topology(), self.config(worker, **settings))

    def count(self, rounds=3):
        """Write, and wait until everything was counted exactly once."""
        self.bench.write(self.source, [(key, "x") for _ in range(rounds) for key in KEYS])
        self.total += rounds
        expected = {key.encode(): self.total.to_bytes(8, "big") for key in KEYS}
        records = self.bench.read(self.counts, lambda got: dict(got) == expected)
        for key in KEYS:
            emitted = [int.from_bytes(value, "big") for k, value in records if k == key.encode()]
            assert emitted == sorted(set(emitted)), "a count was taken back or given twice"

    def changelog(self):
        return f"{self.bench.app}-counts-changelog"


@pytest.fixture
def app(bench):
    return StreamsGroupBench(bench)


def tasks_of(streams):
    return {task for driver in streams._threads.drivers for task in driver.thread.tasks.tasks}


def wait_for(condition, timeout_seconds=40):
    deadline = time.monotonic() + timeout_seconds
    while not (result := condition()):
        assert time.monotonic() < deadline, "not reached in time"
        time.sleep(0.02)
    return result


def failure_of(streams):
    wait_for(lambda: streams.state is ClientState.ERROR)
    return streams.failure


def test_tasks_move_to_a_second_process_and_back_and_everything_is_counted_once(app):
    with app.running("first") as first:
        app.count()
        assert len(tasks_of(first)) == 8
        with app.running("second") as second:
            wait_for(lambda: len(tasks_of(first)) == len(tasks_of(second)) == 4)
            assert not tasks_of(first) & tasks_of(second)
            app.count()
        wait_for(lambda: len(tasks_of(first)) == 8)
        app.count()


def test_an_app_goes_from_classic_to_streams_and_back_with_its_state(app):
    with app.running(group_protocol="classic"):
        app.count()
    with app.running():
        app.count()
    with app.running(group_protocol="classic"):
        app.count()


def test_standbys_take_over_with_their_state(app):
    with app.running("first", num_standby_replicas=1) as first:
        app.count()
        with app.running("second", num_standby_replicas=1) as second:
            wait_for(lambda: len(tasks_of(first)) == len(tasks_of(second)) == 4)
            wait_for(lambda: len(standbys_of(first) | standbys_of(second)) == 4)
            app.count()
        wait_for(lambda: len(tasks_of(first)) == 8)
        app.count()


def test_tasks_of_all_threads_are_found_at_the_endpoint_of_their_process(app):
    both = {"num_standby_replicas": 1, "num_stream_threads": 2}
    here, there = "127.0.0.1:7001", "127.0.0.1:7002"
    with (
        app.running("first", application_server=here, **both) as first,
        app.running("second", application_server=there, **both) as second,
    ):
        wait_for(lambda: len(tasks_of(first)) == len(tasks_of(second)) == 4)
        wait_for(lambda: len(standbys_of(first)) == len(standbys_of(second)) == 2)
        assert all(len(driver.thread.tasks.tasks) == 2 for driver in first._threads.drivers)
        app.count()

        def found(asked):
            known = [asked.query_metadata_for_key("counts", key) for key in KEYS]
            return {(each.partition, each.active, each.standbys) for each in known}

        owners = {number: here for part, number in tasks_of(first) if part == 1}
        owners |= {number: there for part, number in tasks_of(second) if part == 1}
        expected = {(n, owner, (there if owner == here else here,)) for n, owner in owners.items()}
        for asked in (first, second):
            wait_for(lambda asked=asked: found(asked) == expected)


def standbys_of(streams):
    return {task for driver in streams._threads.drivers for task in driver.thread.tasks.standbys.wanted}


def test_one_process_ends_the_application_in_all(app):
    topology = app.topology(poisoned=True)
    with (
        app.bench.running(topology, app.config("first")) as first,
        app.bench.running(topology, app.config("second")) as second,
    ):
        for streams in (first, second):
            streams.set_uncaught_exception_handler(lambda _: UncaughtResponse.SHUTDOWN_APPLICATION)
        wait_for(lambda: len(tasks_of(first)) == len(tasks_of(second)) == 4)
        app.bench.write(app.source, [("k", "poison")])
        errors = {type(failure_of(streams)) for streams in (first, second)}
    assert sf.ApplicationShutdownError in errors and len(errors) == 2


def test_another_topology_is_refused_with_what_to_do(app):
    with app.running():
        app.count()
    with KafkaStreams(app.topology(store="other"), app.config("other")) as streams:
        streams.start()
        error = failure_of(streams)
    assert isinstance(error.__cause__, TopologyRefusedError) and "streamfleet worker reset" in str(error)


def test_a_changelog_that_is_deleted_while_the_app_runs_ends_it(app):
    with app.running(source_check_interval_ms=200) as streams:
        app.count()
        app.bench.admin.delete_topics([app.changelog()])[app.changelog()].result(10)
        error = failure_of(streams)
    assert app.changelog() in str(error) and "reset the app" in str(error)
    assert isinstance(error, InternalTopicLostError) or isinstance(error.__cause__, GroupTopicsError)


def test_a_changelog_that_is_gone_at_the_start_is_not_made_anew(app):
    with app.running():
        app.count()
    app.bench.admin.delete_topics([app.changelog()])[app.changelog()].result(10)
    with (
        KafkaStreams(app.topology(), app.config("fresh")) as streams,
        pytest.raises(InternalTopicLostError, match=f"{app.changelog()}.*reset the app"),
    ):
        streams.start()
    assert app.changelog() not in app.bench.admin.list_topics(timeout=10).topics
