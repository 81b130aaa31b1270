"""Threads of one process: added, removed, replaced after a failure, paused and resumed."""

import copy
import itertools
import time

import pytest

import streamfleet as sf


@pytest.fixture
def copying(bench):
    """A topology that copies, with a function to write records and one to wait for their copies."""
    source, out = bench.topic("in", 4), bench.topic("out", 4)
    builder = sf.StreamsBuilder()
    builder.stream(source).to(out)
    written = []

    def write(count):
        batch = [(str(len(written) + i), f"v{len(written) + i}") for i in range(count)]
        written.extend(batch)
        bench.write(source, batch)

    def wait_for_copies():
        expected = sorted((k.encode(), v.encode()) for k, v in written)
        bench.read(out, lambda got: sorted(got) == expected)

    return builder.build(), write, wait_for_copies


def tasks_by_thread(streams):
    return [len(driver.thread.tasks.tasks) for driver in streams._threads.drivers]


def wait_for(condition, timeout_seconds=30):
    deadline = time.monotonic() + timeout_seconds
    while not condition():
        assert time.monotonic() < deadline, "not reached in time"
        time.sleep(0.02)


def test_threads_are_added_and_removed_while_the_app_runs(bench, copying):
    topology, write, wait_for_copies = copying
    with bench.running(topology, bench.config(processing_guarantee="exactly_once_v2")) as streams:
        write(20)
        wait_for_copies()
        assert streams.add_stream_thread() == 1
        wait_for(lambda: tasks_by_thread(streams) == [2, 2])
        write(20)
        wait_for_copies()
        assert streams.remove_stream_thread() == 1
        wait_for(lambda: tasks_by_thread(streams) == [4])
        with pytest.raises(sf.StreamsError, match="the last stream thread cannot be removed"):
            streams.remove_stream_thread()
        write(20)
        wait_for_copies()


def test_a_paused_app_processes_nothing_until_it_is_resumed(bench):
    source, out = bench.topic("in", 1), bench.topic("out", 1)
    processed = []
    builder = sf.StreamsBuilder()
    builder.stream(source).peek(lambda key, value: processed.append(value)).to(out)
    with bench.running(builder.build()) as streams:
        streams.pause()
        (driver,) = streams._threads.drivers
        wait_for(lambda: driver.thread._is_resting)
        bench.write(source, [("k", "v")] * 10)
        steps = itertools.count()
        driver.thread._before_step = lambda: next(steps)
        wait_for(lambda: next(copy.copy(steps)) >= 5)  # five steps, each of which waits for records
        assert processed == []
        streams.resume()
        bench.read(out, lambda got: len(got) == 10)
    assert len(processed) == 10


def test_a_failed_thread_is_replaced_and_goes_on_at_the_last_commit(bench):
    source, out = bench.topic("in", 2), bench.topic("out", 2)
    failures = []

    def sometimes(value):
        if value == "bad" and not failures:
            failures.append(value)
            raise RuntimeError("the first time only")
        return value

    builder = sf.StreamsBuilder()
    builder.stream(source).map_values(sometimes, name="fragile").to(out)
    seen = []

    def handler(error):
        seen.append(error)
        return sf.UncaughtResponse.REPLACE_THREAD

    streams = sf.KafkaStreams(builder.build(), bench.config(processing_guarantee="exactly_once_v2"))
    streams.set_uncaught_exception_handler(handler)
    with streams:
        streams.start()
        bench.write(source, [("a", "1"), ("a", "bad"), ("a", "3")])
        records = bench.read(out, lambda got: len(got) == 3)
    assert records == [(b"a", b"1"), (b"a", b"bad"), (b"a", b"3")]
    assert [type(error) for error in seen] == [sf.ProcessingError]


def test_one_member_can_end_the_whole_application(bench):
    source = bench.topic("in", 2)
    builder = sf.StreamsBuilder()
    builder.stream(source).foreach(lambda key, value: int(value))
    topology = builder.build()
    first = sf.KafkaStreams(topology, bench.config(worker="first"))
    second = sf.KafkaStreams(topology, bench.config(worker="second"))
    for streams in (first, second):
        streams.set_uncaught_exception_handler(lambda error: sf.UncaughtResponse.SHUTDOWN_APPLICATION)
    with first, second:
        first.start()
        second.start()
        wait_for(lambda: tasks_by_thread(first) == tasks_by_thread(second) == [1])
        bench.write(source, [("k", "not a number")])
        wait_for(lambda: first.state is second.state is sf.ClientState.ERROR)
        kinds = {type(streams.failure) for streams in (first, second)}
    assert kinds == {sf.ProcessingError, sf.ApplicationShutdownError}
