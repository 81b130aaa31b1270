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


def test_processes_of_two_versions_share_what_both_have_while_an_app_is_changed_one_by_one(bench):
    source, counts = bench.topic("in", 4), bench.topic("counts", 4)
    other, copied = bench.topic("other", 2), bench.topic("copied", 2)

    def version(number):
        builder = sf.StreamsBuilder()
        if number == 2:  # in front, so that what both have has another number
            builder.stream(other).group_by_key().count(store="others").to_stream().to(
                copied, value_serde=sf.serdes.long()
            )
        words = builder.stream(source).group_by_key().count(store="counts")
        words.to_stream().to(counts, value_serde=sf.serdes.long())
        return builder.build()

    def running(worker, number):
        return bench.running(version(number), bench.config(worker, processing_guarantee="exactly_once_v2"))

    keys, total = [f"k{i}" for i in range(40)], 0

    def write_and_expect(*, others):
        nonlocal total
        bench.write(source, [(key, "x") for key in keys])
        bench.write(other, [(key, "x") for key in keys])
        total += 1
        bench.read(counts, lambda got: newest(got) == {key.encode(): total for key in keys})
        if others:
            bench.read(copied, lambda got: newest(got) == {key.encode(): total for key in keys})

    with running("first", 1) as old, running("second", 1) as second:
        wait_for(lambda: len(tasks_of(old)) == len(tasks_of(second)) == 2)
        write_and_expect(others=False)
        second.close()
        with running("second", 2) as new:
            wait_for(lambda: len(tasks_of(old)) >= 1 and len(tasks_of(old)) + len(tasks_of(new)) == 6)
            assert {task for task in tasks_of(new) if task.sub_topology == 0} == {sf.TaskId(0, n) for n in range(2)}
            write_and_expect(others=True)  # read from the beginning by the one that has it
            old.close()
            with running("first", 2) as last:
                wait_for(lambda: len(tasks_of(last)) == len(tasks_of(new)) == 3)
                write_and_expect(others=True)
    emitted = {key: [] for key in keys}
    for key, value in bench.read(counts, lambda got: newest(got) == {key.encode(): total for key in keys}):
        emitted[key.decode()].append(int.from_bytes(value, "big"))
    assert all(values == sorted(set(values)) for values in emitted.values())


def newest(records):
    return {key: int.from_bytes(value, "big") for key, value in records}
