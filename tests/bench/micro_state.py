"""Windows, sessions, joins and cached counts without a broker: rows of micro.py's table, without a bar and nothing beside them.

The topologies are those of the peers' bench, and so is what they read: raw JSON of the same generator, a millisecond of stream time
apart. Here all is of one partition. Each turn ends with a commit, as caches forward only then. So a turn is longer here: with the
default of ten batches, 50,000 records to a commit, about what a StreamThread comes to in its second.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from tests.bench.peers.dataset import orders
from tests.bench.peers.runners import streamfleet_app
from tests.bench.peers.workloads import WORKLOADS
from tests.bench.pretended_task import BATCH, commit, running

import streamfleet as sf
from streamfleet.ids import TopicPartition
from streamfleet.records import RawRecord
from streamfleet.task.stream_task import StreamTask

TITLES = {
    "W3": "JSON in, count per key, default cache",
    "W4": "JSON in, one-minute window count, every update",
    "W4c": "JSON in, one-minute window count, default cache",
    "Ws": "JSON in, session windows, every update",
    "Wj": "JSON in, stream-stream join, per pair",
}
INPUT, PARTNER = "in", "partner"
LONGER = 5
BEGIN_MS = 1_700_000_040_000
"""The beginning of a minute."""
Batches = list[tuple[TopicPartition, list[RawRecord]]]


@dataclass(frozen=True)
class Side:
    """One input: where it is read from, and what comes next."""

    partition: TopicPartition
    records: Iterator[RawRecord]


def lines(rounds: int, batches: int) -> Iterator[str]:
    batches *= LONGER
    for name, title in TITLES.items():
        with running(topology(name), cache_max_bytes(name)) as task:
            turns = measure(task, sides(name, (rounds + 1) * batches * BATCH), rounds, batches)
        yield f"| {title} | {statistics.median(turns):.2f} ({min(turns):.2f}) | - | - | |"


def topology(name: str) -> sf.Topology:
    return streamfleet_app.of_workload(WORKLOADS[name].code, INPUT, "out", PARTNER)


def cache_max_bytes(name: str) -> int:
    default = sf.StreamsConfig(application_id="micro").statestore_cache_max_bytes
    return default if name in streamfleet_app.CACHED else 0


def sides(name: str, count: int) -> list[Side]:
    """A join has two; there the same number is of both."""
    family = WORKLOADS[name].family
    wanted = {INPUT: family, PARTNER: "paid"} if family == "pairs" else {INPUT: family}
    return [Side(TopicPartition(topic, 0), raw(topic, of, count)) for topic, of in wanted.items()]


def raw(topic: str, family: str, count: int) -> Iterator[RawRecord]:
    for offset, (key, value, timestamp) in enumerate(orders(family, count, BEGIN_MS, {})):
        yield RawRecord(topic, 0, offset, timestamp, key, value)


def measure(task: StreamTask, sides: Sequence[Side], rounds: int, batches: int) -> list[float]:
    """Microseconds per record of the first side, by turn; the one before the first only warms up."""
    return [turn(task, sides, batches) for _ in range(rounds + 1)][1:]


def turn(task: StreamTask, sides: Sequence[Side], batches: int) -> float:
    """What is read has been made before the clock starts."""
    todo = [[(side.partition, list(islice(side.records, BATCH))) for side in sides] for _ in range(batches)]
    gc.collect()
    gc.freeze()  # as a worker does
    began = time.thread_time()
    for batch in todo:
        process(task, batch)
    commit(task)
    spent = time.thread_time() - began
    gc.unfreeze()
    return spent / batches / BATCH * 1e6


def process(task: StreamTask, batch: Batches) -> None:
    for partition, records in batch:
        task.add_records(partition, records)
    while task.process(BATCH):
        pass
