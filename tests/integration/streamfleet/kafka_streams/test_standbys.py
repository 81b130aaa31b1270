"""Copies of state on the real broker: they follow, take over, and become copies again."""

import time
from contextlib import ExitStack

import pytest

import streamfleet as sf
from streamfleet.kafka_streams import ClientState, KafkaStreams
from streamfleet.state.rocksdb_engine import RocksDBEngine

LONG = sf.serdes.long()


def counting(bench, partitions=2):
    source, counts = bench.topic("in", partitions), bench.topic("counts", partitions)
    builder = sf.StreamsBuilder()
    builder.stream(source).group_by_key().count(store="counts").to_stream().to(counts, value_serde=LONG)
    return builder.build(), source, counts


def wait_for(condition, timeout_seconds=60):
    deadline = time.monotonic() + timeout_seconds
    while not condition():
        assert time.monotonic() < deadline, "not reached in time"
        time.sleep(0.02)


def tasks_of(streams):
    return {task.id for thread in streams.threads() for task in thread.tasks if task.phase == "running"}


def standbys_of(streams):
    return {standby.id: standby.lag_records for thread in streams.threads() for standby in thread.standbys}


def restored_by(streams):
    return sum(counts.restored_records for counts in streams.metrics().threads.values())


def newest(records):
    return {key: int.from_bytes(value, "big") for key, value in records}


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_F16_a_standby_takes_over_with_what_it_has_and_restores_only_the_gap(bench, guarantee, monkeypatch):
    topology, source, counts = counting(bench)
    keys = [f"k{i}" for i in range(200)]
    opened, opening = [], RocksDBEngine.__init__

    def counted(self, path, options=None):
        opened.append(path)
        opening(self, path, options)

    monkeypatch.setattr(RocksDBEngine, "__init__", counted)

    def config(worker):
        return bench.config(worker=worker, processing_guarantee=guarantee, num_standby_replicas=1)

    bench.write(source, [(key, "x") for key in keys])
    with bench.running(topology, config("first")) as first, bench.running(topology, config("second")) as second:
        wait_for(lambda: len(tasks_of(first)) == len(tasks_of(second)) == 1)
        wait_for(lambda: standbys_of(first) == dict.fromkeys(tasks_of(second), 0))
        wait_for(lambda: standbys_of(second) == dict.fromkeys(tasks_of(first), 0))
        bench.read(counts, lambda got: newest(got) == {key.encode(): 1 for key in keys})
        first.close()
        databases, restored = len(opened), restored_by(second)
        wait_for(lambda: len(tasks_of(second)) == 2)
        assert len(opened) == databases
        assert restored_by(second) - restored <= len(keys)  # at most what one commit held
        bench.write(source, [(key, "x") for key in keys])
        bench.read(counts, lambda got: newest(got) == {key.encode(): 2 for key in keys})


def test_pausing_stops_copies_too_and_resuming_lets_them_catch_up(bench):
    topology, source, counts = counting(bench, partitions=1)
    config = lambda worker: bench.config(worker=worker, num_standby_replicas=1)
    with bench.running(topology, config("first")) as first, bench.running(topology, config("second")) as second:
        wait_for(lambda: len(standbys_of(first) | standbys_of(second)) == 1)
        active, copy = (first, second) if tasks_of(first) else (second, first)
        bench.write(source, [("a", "x")])
        wait_for(lambda: restored_by(copy) >= 1)
        copy.pause()
        before = restored_by(copy)
        bench.write(source, [("b", "x"), ("c", "x")])
        bench.read(counts, lambda got: newest(got) == {b"a": 1, b"b": 1, b"c": 1})
        assert restored_by(copy) == before
        copy.resume()
        wait_for(lambda: restored_by(copy) == before + 2)
        assert active.state is copy.state is ClientState.RUNNING


def test_a_restart_of_a_process_with_standbys_comes_back_without_reading_its_changelogs_again(bench):
    topology, source, counts = counting(bench)
    keys = [f"k{i}" for i in range(50)]
    bench.write(source, [(key, "x") for key in keys])
    with bench.running(topology):
        bench.read(counts, lambda got: newest(got) == {key.encode(): 1 for key in keys})
    streams = KafkaStreams(topology, bench.config())
    with streams:
        streams.start()
        sums = streams._factory.inventory.offset_sums()
        assert len(sums) == 2 and sum(sums.values()) >= len(keys)
        streams.wait_until_running(30)
        assert restored_by(streams) == 0


def test_with_several_threads_a_copy_is_in_another_process_and_its_tasks_go_on_in_all_threads(bench):
    topology, source, counts = counting(bench, partitions=4)
    keys = [f"k{i}" for i in range(200)]
    config = lambda worker: bench.config(worker=worker, num_standby_replicas=1, num_stream_threads=2)
    bench.write(source, [(key, "x") for key in keys])
    with bench.running(topology, config("first")) as first, bench.running(topology, config("second")) as second:
        wait_for(lambda: len(tasks_of(first)) == len(tasks_of(second)) == 2)
        wait_for(lambda: standbys_of(first) == dict.fromkeys(tasks_of(second), 0))
        wait_for(lambda: standbys_of(second) == dict.fromkeys(tasks_of(first), 0))
        bench.read(counts, lambda got: newest(got) == {key.encode(): 1 for key in keys})
        first.close()
        wait_for(lambda: len(tasks_of(second)) == 4)
        assert [len(thread.tasks) for thread in second.threads()] == [2, 2]
        bench.write(source, [(key, "x") for key in keys])
        bench.read(counts, lambda got: newest(got) == {key.encode(): 2 for key in keys})


def test_copies_are_in_another_zone_than_their_tasks(bench):
    """By number alone, the first two would have copies of each other."""
    topology, _, _ = counting(bench, partitions=4)
    zones = {"first": "north", "second": "north", "third": "south"}

    def config(worker):
        zone = {"client_tags": {"zone": zones[worker]}, "rack_aware_assignment_tags": ("zone",)}
        return bench.config(worker=worker, num_standby_replicas=1, **zone)

    with ExitStack() as running:
        streams = {worker: running.enter_context(bench.running(topology, config(worker))) for worker in zones}

        def zones_of(find):
            return {task: zones[worker] for worker, each in streams.items() for task in find(each)}

        wait_for(lambda: sorted(len(tasks_of(each)) for each in streams.values()) == [1, 1, 2])
        wait_for(lambda: len(zones_of(standbys_of)) == 4)
        active, copies = zones_of(tasks_of), zones_of(standbys_of)
        assert active.keys() == copies.keys()
        assert all(copies[task] != zone for task, zone in active.items())
