"""What a running app does by itself so that nothing grows without end: in topics, in memory, on disk."""

import threading
import time

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import OffsetSpec
from tests.ledger.topics import committed_offsets

import streamfleet as sf
from streamfleet.clock import SystemClock
from streamfleet.ids import TopicPartition as Place

LONG = sf.serdes.long()
LATE_MS = 300_000
"""Longer than any test."""


def wait_for(condition, timeout_seconds=30):
    deadline = time.monotonic() + timeout_seconds
    while not condition():
        assert time.monotonic() < deadline, "not reached in time"
        time.sleep(0.02)


# repartition topics


def log_starts(bench, topic):
    asked = {TopicPartition(topic, n): OffsetSpec.earliest() for n in range(2)}
    return {Place(p.topic, p.partition): f.result(10).offset for p, f in bench.admin.list_offsets(asked).items()}


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_processed_records_are_deleted_from_repartition_topics_and_no_others(bench, guarantee):
    source, out = bench.topic("in"), bench.topic("out")
    builder = sf.StreamsBuilder()
    counted = builder.stream(source).group_by(lambda _, value: value, name="by-value").count(store="counts")
    counted.to_stream().to(out, value_serde=LONG)
    shuffle = f"{bench.app}-by-value-repartition"
    config = bench.config(processing_guarantee=guarantee, repartition_purge_interval_ms=0, commit_interval_ms=50)

    def is_caught_up():
        starts = log_starts(bench, shuffle)
        committed = committed_offsets(bench.bootstrap, bench.app, list(starts))  # asked later: it only grows
        assert all(start <= committed.get(place, 0) for place, start in starts.items())
        return all(0 < start == committed.get(place, 0) for place, start in starts.items())

    with bench.running(builder.build(), config):
        writer = threading.Thread(
            target=lambda: [bench.write(source, [(str(n), f"v{n % 20}") for n in range(100)]) for _ in range(20)]
        )
        writer.start()
        while writer.is_alive():
            is_caught_up()
        wait_for(is_caught_up)
        total = lambda got: sum({key: int.from_bytes(value, "big") for key, value in got}.values())
        bench.read(out, lambda got: total(got) == 2000)
        wait_for(is_caught_up)


# uncommitted changes


def test_many_changes_are_committed_before_it_is_time(bench):
    source, out = bench.topic("in", 1), bench.topic("out", 1)
    builder = sf.StreamsBuilder()
    latest = builder.stream(source).group_by_key().reduce(lambda _, value: value, store="latest")
    latest.to_stream().to(out)
    config = bench.config(
        processing_guarantee="exactly_once_v2",
        commit_interval_ms=LATE_MS,
        transaction_timeout_ms=2 * LATE_MS,
        statestore_uncommitted_max_bytes=20_000,
        statestore_cache_max_bytes=0,
    )
    with bench.running(builder.build(), config) as streams:
        few, many = [("a", "x" * 100)], [(f"k{n}", "x" * 1000) for n in range(30)]
        bench.write(source, few)
        (driver,) = streams._threads.drivers
        wait_for(lambda: sum(task.uncommitted_bytes for task in driver.thread.tasks.running) > 100)
        assert driver.thread.counts.commit_latency.count == 0
        bench.write(source, many)
        bench.read(out, lambda got: len(got) >= 20)  # committed results
        assert driver.thread.counts.commit_latency.count >= 1


# local state


class MovedClock(SystemClock):
    """The machine's clocks, some time later."""

    later_ms = 0

    def now_ms(self):
        return super().now_ms() + self.later_ms

    def monotonic_ms(self):
        return super().monotonic_ms() + self.later_ms


def test_the_state_of_a_task_that_went_elsewhere_is_deleted_after_a_while(bench):
    source, out = bench.topic("in"), bench.topic("out")
    builder = sf.StreamsBuilder()
    builder.stream(source).group_by_key().count(store="counts").to_stream().to(out, value_serde=LONG)
    topology = builder.build()
    bench.write(source, [(str(n), "x") for n in range(50)])
    clock = MovedClock()
    first = sf.KafkaStreams(topology, bench.config(worker="first"), clock=clock)
    directory = bench.directory / "first" / bench.app

    def on_disk():
        return {path.name.rpartition("_")[2] for path in directory.iterdir() if path.is_dir()}

    def running(streams):
        return {status.id.rpartition("_")[2] for status in streams.threads()[0].tasks if status.phase == "running"}

    with first:
        first.start()
        first.wait_until_running(30)
        assert on_disk() == {"0", "1"}
        with bench.running(topology, bench.config(worker="second")) as second:
            wait_for(lambda: len(running(first)) == len(running(second)) == 1 and first.state is sf.ClientState.RUNNING)
            clock.later_ms = 120_000  # it looks again, and that is too early
            (driver,) = first._threads.drivers
            wait_for(lambda: first._next_cleaning_ms > clock.monotonic_ms())
            assert on_disk() == {"0", "1"}
            clock.later_ms = first.config.state_cleanup_delay_ms + 240_000
            wait_for(lambda: on_disk() == running(first))
        wait_for(lambda: running(first) == {"0", "1"})  # which comes back, and is restored
        expected = {str(n).encode(): 1 for n in range(50)}
        bench.write(source, [(str(n), "x") for n in range(50)])
        expected = dict.fromkeys(expected, 2)
        bench.read(out, lambda got: {k: int.from_bytes(v, "big") for k, v in got} == expected)


def test_a_changelog_that_was_deleted_while_the_app_was_down_is_told_on_a_host_that_knows_nothing_of_it(bench):
    source, changelog = bench.topic("in"), f"{bench.app}-counts-changelog"
    builder = sf.StreamsBuilder()
    builder.stream(source).group_by_key().count(store="counts")
    topology = builder.build()
    bench.write(source, [("a", "x")])
    with bench.running(topology, bench.config(worker="first")) as streams:
        wait_for(lambda: any(task.committed for thread in streams.threads() for task in _inputs(thread)))
        assert streams.metrics().empty_changelogs == {}
    bench.admin.delete_topics([changelog])[changelog].result(10)
    wait_for(lambda: changelog not in bench.admin.list_topics(timeout=10).topics)
    with bench.running(topology, bench.config(worker="second")) as streams:
        assert streams.metrics().empty_changelogs == {changelog: 1}


def _inputs(thread):
    return [each for task in thread.tasks for each in task.inputs]
