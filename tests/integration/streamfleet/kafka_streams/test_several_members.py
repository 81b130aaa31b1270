"""Several members of one group: tasks are shared, moved and taken over; no record is lost, none is counted twice."""

import time

import pytest

import streamfleet as sf


def counting(bench, partitions=4):
    source, counts = bench.topic("in", partitions), bench.topic("counts", partitions)
    builder = sf.StreamsBuilder()
    builder.stream(source).group_by_key().count(store="counts").to_stream().to(counts, value_serde=sf.serdes.long())
    return builder.build(), source, counts


def tasks_of(streams):
    return {task for driver in streams._threads.drivers for task in driver.thread.tasks.tasks}


def wait_for(condition, timeout_seconds=30):
    deadline = time.monotonic() + timeout_seconds
    while not condition():
        assert time.monotonic() < deadline, "not reached in time"
        time.sleep(0.02)


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_tasks_move_to_a_second_member_and_back(bench, guarantee):
    topology, source, counts = counting(bench)
    keys = [f"k{i}" for i in range(40)]
    total = 0

    def write_and_expect(rounds):
        nonlocal total
        bench.write(source, [(key, "x") for _ in range(rounds) for key in keys])
        total += rounds
        bench.read(counts, lambda got: newest(got) == {key.encode(): total for key in keys})

    def config(worker):
        return bench.config(worker=worker, processing_guarantee=guarantee)

    with bench.running(topology, config("first")) as first:
        write_and_expect(5)
        assert len(tasks_of(first)) == 4
        with bench.running(topology, config("second")) as second:
            wait_for(lambda: len(tasks_of(first)) == len(tasks_of(second)) == 2)
            assert not tasks_of(first) & tasks_of(second)
            write_and_expect(5)
        wait_for(lambda: len(tasks_of(first)) == 4)
        write_and_expect(5)
    if guarantee == "exactly_once_v2":
        records = bench.read(counts, lambda got: newest(got) == {key.encode(): total for key in keys})
        for key in keys:
            emitted = [int.from_bytes(value, "big") for k, value in records if k == key.encode()]
            assert emitted == sorted(set(emitted))


def newest(records):
    return {key: int.from_bytes(value, "big") for key, value in records}
