"""A second process on the real broker: tasks with state are made ready there before they move, and moving costs no restore."""

import itertools
import threading
import time

import streamfleet as sf
from streamfleet.kafka_streams import KafkaStreams
from streamfleet.partitioner import partition_for
from streamfleet.state.rocksdb_engine import RocksDBEngine
from streamfleet.thread.warm_up_watch import FIRST_PAUSE_MS

KEYS = 3000
VALUE = "x" * 500


def latest_value(bench, partitions=2):
    source = bench.topic("in", partitions)
    builder = sf.StreamsBuilder()
    builder.stream(source).group_by_key().reduce(lambda old, new: new, store="latest")
    return builder.build(), source


def wait_for(condition, timeout_seconds=90):
    deadline = time.monotonic() + timeout_seconds
    while not condition():
        assert time.monotonic() < deadline, "not reached in time"
        time.sleep(0.02)


def running(streams):
    return {task.id for thread in streams.threads() for task in thread.tasks if task.phase == "running"}


def copies(streams):
    return {copy.id: copy for thread in streams.threads() for copy in thread.standbys}


def counts_of(streams):
    (counts,) = streams.metrics().threads.values()
    return counts


class Heard(sf.StateRestoreListener, sf.StandbyUpdateListener):
    def __init__(self):
        self.calls = []

    def on_restore_start(self, partition, store, starting_offset, ending_offset):
        self.calls.append("restore start")

    def on_restore_end(self, partition, store, total_restored):
        self.calls.append("restore end")

    def on_update_start(self, partition, store, starting_offset):
        self.calls.append("update start")

    def on_batch_loaded(self, partition, store, task_id, batch_end_offset, batch_size, current_end_offset):
        if self.calls[-1] != "batch":
            self.calls.append("batch")

    def on_update_suspended(self, partition, store, store_offset, current_end_offset, reason):
        self.calls.append(reason.value)


def test_F17_a_task_moves_when_its_warm_up_has_caught_up_and_not_before(bench, monkeypatch):
    opened, opening = [], RocksDBEngine.__init__

    def counted(self, path, options=None):
        opened.append(path)
        opening(self, path, options)

    monkeypatch.setattr(RocksDBEngine, "__init__", counted)
    topology, source = latest_value(bench)
    bench.write(source, [(f"k{i}", VALUE) for i in range(KEYS)])
    settings = {"acceptable_recovery_lag": 100, "changelog_deduplicate": False}
    with bench.running(topology, bench.config("first", **settings)) as first:
        wait_for(lambda: sum(counts_of(first).processed_records.values()) == KEYS)
        rate = 100_000  # bytes per second: a task has about seven times as much
        config = bench.config("second", restore_rate_limit_bytes_per_second=rate, **settings)
        heard = Heard()
        second = KafkaStreams(topology, config)
        second.set_state_restore_listener(heard)
        second.set_standby_update_listener(heard)
        with second:
            began = time.monotonic()
            second.start()
            wait_for(lambda: any(copy.kind == "warmup" and copy.restored_records for copy in copies(second).values()))
            wait_for(lambda: counts_of(second).restored_records > KEYS // 8)
            second.probe()  # a rebalance in the middle changes nothing
            wait_for(lambda: counts_of(second).rebalances >= 2)
            elapsed = time.monotonic() - began
            assert counts_of(second).restored_records * len(VALUE) <= rate * (elapsed + 1)
            assert running(first) == {"0_0", "0_1"} and not running(second)

            second.set_restore_rate(0)
            bench.write(source, [(f"k{i}", "new") for i in range(20)])  # the first goes on working
            wait_for(lambda: len(running(first)) == len(running(second)) == 1)
            assert len([path for path in opened if "second" in str(path)]) == 1  # a copy became active as it was
            assert counts_of(second).restored_records <= KEYS // 2 + KEYS // 8 + 40  # nothing was read twice
            assert heard.calls == ["update start", "batch", "promoted", "restore start", "restore end"]


def test_F17_a_warm_up_that_is_gone_half_way_leaves_the_task_where_it_is_and_goes_on_from_there(bench):
    topology, source = latest_value(bench)
    bench.write(source, [(f"k{i}", VALUE) for i in range(KEYS)])
    settings = {"acceptable_recovery_lag": 100, "changelog_deduplicate": False}
    with bench.running(topology, bench.config("first", **settings)) as first:
        wait_for(lambda: sum(counts_of(first).processed_records.values()) == KEYS)
        slow = bench.config("second", restore_rate_limit_bytes_per_second=150_000, **settings)
        with KafkaStreams(topology, slow) as second:
            second.start()
            wait_for(lambda: counts_of(second).restored_records >= KEYS // 4)
        done = counts_of(second).restored_records
        wait_for(lambda: running(first) == {"0_0", "0_1"})
        with KafkaStreams(topology, bench.config("second", **settings)) as second:
            second.start()
            wait_for(lambda: len(running(first)) == len(running(second)) == 1)
            assert counts_of(second).restored_records <= KEYS - done + 40


def keys_of(partition, count, partitions):
    named = (f"key-{number}" for number in itertools.count())
    return list(itertools.islice((key for key in named if partition_for(key.encode(), partitions) == partition), count))


def test_a_warm_up_that_has_caught_up_does_not_wait_for_another_one_that_has_not(bench):
    topology, source = latest_value(bench, partitions=4)
    much, little = 6000, 150
    sizes = (much, much, much, little)
    for partition, size in enumerate(sizes):
        bench.write(source, [(key, VALUE) for key in keys_of(partition, size, partitions=4)])
    settings = {"acceptable_recovery_lag": 100, "changelog_deduplicate": False}
    with bench.running(topology, bench.config("first", **settings)) as first:
        wait_for(lambda: sum(counts_of(first).processed_records.values()) == sum(sizes))
        # Little at a time, of both: or all of the big one may be fetched, and read, before the little one. But batches are whole.
        in_turns = {"restore.consumer.max.partition.fetch.bytes": 20_000}
        slow = bench.config("second", restore_rate_limit_bytes_per_second=300_000, client_settings=in_turns, **settings)
        with KafkaStreams(topology, slow) as second:
            second.start()
            wait_for(lambda: len(copies(second)) == 2)
            assert "0_3" in copies(second)  # and one that takes ten seconds
            wait_for(lambda: running(second) == {"0_3"})
            (left,) = copies(second).values()
            assert left.kind == "warmup" and left.lag_records > settings["acceptable_recovery_lag"]
            wait_for(lambda: len(running(first)) == 3)
            second.set_restore_rate(0)
            wait_for(lambda: len(running(first)) == len(running(second)) == 2)


def test_a_copy_of_an_input_topic_is_ready_though_more_waits_in_the_topic_than_may_be_restored(bench):
    source = bench.topic("in", 2)
    builder = sf.StreamsBuilder()
    builder.table(source, materialized=sf.Materialized("latest"))
    settings = {"acceptable_recovery_lag": 100, "topology_optimization": "reuse.ktable.source.topics"}
    config = bench.config("first", **settings)
    topology = builder.build(config)
    bench.write(source, [(f"k{i}", "old") for i in range(KEYS)])
    with bench.running(topology, config) as first:
        wait_for(lambda: sum(counts_of(first).processed_records.values()) == KEYS)
        first.pause()
        bench.write(source, [(f"k{i}", "new") for i in range(KEYS)])  # nobody processes these yet
        with KafkaStreams(topology, bench.config("second", **settings)) as second:
            second.start()
            wait_for(lambda: len(running(first)) == len(running(second)) == 1, timeout_seconds=30)
            assert counts_of(second).restored_records <= KEYS


def test_a_task_that_commits_every_thirty_seconds_moves_though_each_commit_is_more_than_may_be_restored(bench):
    """At least once with the defaults: the changelog gets each key once, when the rebalance begins that is to move the task."""
    topology, source = latest_value(bench)
    keys, ended = itertools.cycle(range(KEYS)), threading.Event()

    def change(number):
        bench.write(source, [(f"k{next(keys)}", VALUE) for _ in range(number)])

    def write_on():
        while not ended.wait(0.1):
            change(4)

    settings = {
        "acceptable_recovery_lag": 300,
        "commit_interval_ms": sf.StreamsConfig(application_id="defaults").commit_interval_ms,
    }
    bench.write(source, [(f"k{i}", VALUE) for i in range(KEYS)])
    writer = threading.Thread(target=write_on)
    with bench.running(topology, bench.config("first", **settings)) as first:
        wait_for(lambda: sum(counts_of(first).processed_records.values()) == KEYS)
        slow = bench.config("second", restore_rate_limit_bytes_per_second=300_000, **settings)
        with KafkaStreams(topology, slow) as second:  # two seconds and a half for the copy
            second.start()
            try:
                wait_for(lambda: copies(second))
                change(800)  # 400 of each task: more than may be restored, and that much is committed to move it
                writer.start()
                wait_for(lambda: counts_of(second).rebalances >= 2)  # asked for, and not moved
                began = time.monotonic()
                wait_for(lambda: len(running(first)) == len(running(second)) == 1, timeout_seconds=30)
                assert time.monotonic() - began < FIRST_PAUSE_MS / 1000
            finally:
                ended.set()
                if writer.ident is not None:
                    writer.join()


def test_tasks_move_to_all_threads_of_a_second_process(bench):
    topology, source = latest_value(bench, partitions=4)
    bench.write(source, [(f"k{i}", VALUE) for i in range(KEYS)])
    settings = {"acceptable_recovery_lag": 100, "changelog_deduplicate": False, "num_stream_threads": 2}
    with bench.running(topology, bench.config("first", **settings)) as first:
        wait_for(lambda: sum(sum(each.processed_records.values()) for each in first.metrics().threads.values()) == KEYS)
        with KafkaStreams(topology, bench.config("second", **settings)) as second:
            second.start()
            for streams in (first, second):
                wait_for(lambda streams=streams: [len(t.tasks) for t in streams.threads()] == [1, 1])
            wait_for(lambda: len(running(first) | running(second)) == 4)
            assert sum(each.restored_records for each in second.metrics().threads.values()) <= KEYS
