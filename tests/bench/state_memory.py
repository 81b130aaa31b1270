"""How much memory a process has whose state is many times larger than what it was given for databases: `make bench`.

One task without a broker writes every row of a store twice, in an order that hits all of it, and reads each before it writes it.
Resident memory is looked at after each commit; what counts is its growth since the task was opened. Prints one line, and with
`--json` the figures.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.bench.pretended_task import BATCH, commit, running

import streamfleet as sf
from streamfleet.ids import TopicPartition
from streamfleet.records import RawRecord
from streamfleet.state.rocksdb_engine import RocksDBMemory, RocksDBOptions
from streamfleet.task.stream_task import StreamTask

INPUT = TopicPartition("in", 0)
ROUNDS = 2
STEP = 7919
"""A prime that the number of keys is no multiple of: keys come in an order that is far from that of the store."""
UNCOMMITTED_BYTES = 16 * 2**20


@dataclass(frozen=True)
class Figures:
    keys: int
    given_bytes: int
    state_bytes: int
    """On the disk, at the end."""
    growth_bytes: int
    """Of resident memory, at most."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=2_000_000, help="rows of the store (default: %(default)s)")
    parser.add_argument("--value-bytes", type=int, default=200)
    parser.add_argument("--given-mib", type=int, default=32, help="rocksdb.memory.max.bytes (default: %(default)s MiB)")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures = measured(options.keys, options.value_bytes, options.given_mib * 2**20)
    if options.json:
        print(json.dumps(asdict(figures)))
        return
    mib = {name: f"{value / 2**20:,.0f} MiB" for name, value in asdict(figures).items() if name.endswith("_bytes")}
    print(
        f"{figures.keys:,} rows, {mib['state_bytes']} on the disk, {mib['given_bytes']} given to the database: "
        f"the process grew by {mib['growth_bytes']} at most"
    )


def measured(keys: int, value_bytes: int, given_bytes: int) -> Figures:
    half = given_bytes // 2
    options = RocksDBOptions(memory=RocksDBMemory(block_cache_bytes=half, write_buffer_bytes=half))
    with (
        tempfile.TemporaryDirectory(prefix="streamfleet-memory-") as directory,
        running(newest_rows(), rocksdb_options=options, directory=Path(directory) / "task") as task,
    ):
        before, most = resident_bytes(), 0
        for batch in batches(keys, value_bytes):
            work(task, batch)
            if task.uncommitted_bytes > UNCOMMITTED_BYTES:
                commit(task)
                most = max(most, resident_bytes())
        commit(task)
        state_bytes = sum(path.stat().st_size for path in Path(directory).rglob("*.sst"))
        return Figures(keys, given_bytes, state_bytes, max(most, resident_bytes()) - before)


def newest_rows() -> sf.Topology:
    plain = sf.serdes.bytes()
    builder = sf.StreamsBuilder()
    grouped = builder.stream("in", key_serde=plain, value_serde=plain).group_by_key()
    grouped.reduce(lambda _, new: new, materialized=sf.Materialized("rows", key_serde=plain, value_serde=plain))
    return builder.build()


def batches(keys: int, value_bytes: int) -> Iterator[list[RawRecord]]:
    filler = bytes(number * 31 % 256 for number in range(value_bytes))
    for begin in range(0, ROUNDS * keys, BATCH):
        numbers = [number * STEP % keys for number in range(begin, min(begin + BATCH, ROUNDS * keys))]
        yield [RawRecord(INPUT.topic, 0, begin + at, 1, b"%012d" % number, filler) for at, number in enumerate(numbers)]


def work(task: StreamTask, records: list[RawRecord]) -> None:
    task.add_records(INPUT, records)
    while task.process():
        pass


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main()
