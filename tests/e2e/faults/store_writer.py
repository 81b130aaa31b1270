"""Writes a task's database and is killed while it does: `python -m tests.e2e.faults.store_writer DIRECTORY KILLS SEED`.

Run by test_store_writes.py, in a process of its own because it forks: RocksDB is opened in children only. Every commit has a number;
it sets some rows to that number and the changelog offset to it, too, so that what must be there follows from the offset. Buffers and
batches are made small: a kill shall find databases whose rows have reached the disk in part, and commits of several batches.

Prints one JSON line: how many kills, how many of them lost commits, how far the database came. Ends with 1 and says which row is wrong.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from streamfleet.state import dirty_buffer
from streamfleet.state.engine_rows import EngineRows
from streamfleet.state.rocksdb_engine import RocksDBEngine, RocksDBOptions

CHANGELOG = "app-rows-changelog"
KEYS = 300
PADDING = b"." * 200
SMALL_MEMTABLE_BYTES = 64 * 2**10
SMALL_BATCH_BYTES = 8 * 2**10


def touched(number: int) -> list[int]:
    """The rows that a commit sets: a few, and now and then so many that one batch does not hold them."""
    rng = random.Random(number)
    return rng.sample(range(KEYS), 200 if number % 7 == 0 else 8)


def last_commits(up_to: int) -> dict[int, int]:
    """By row, the last commit that set it."""
    return {key: number for number in range(1, up_to + 1) for key in touched(number)}


def opened(directory: Path) -> tuple[RocksDBEngine, EngineRows, int]:
    engine = RocksDBEngine(directory / "0_0", RocksDBOptions(memtable_bytes=SMALL_MEMTABLE_BYTES))
    rows = EngineRows(engine, "app", "0_0")
    return engine, rows, dict(rows.offsets()).get(CHANGELOG, 0)


def write_for_ever(directory: Path, progress: int) -> None:
    dirty_buffer.MAX_BATCH_BYTES = SMALL_BATCH_BYTES
    _, rows, number = opened(directory)
    buffer = rows.buffer("rows")
    while True:
        number += 1
        for key in touched(number):
            buffer.put(key.to_bytes(4, "big"), number.to_bytes(8, "big") + PADDING)
        rows.commit({CHANGELOG: number})
        os.pwrite(progress, number.to_bytes(8, "big"), 0)


def check(directory: Path, reached: int) -> None:
    """No row may be older than the offset says, and none newer than what was written."""
    engine, rows, offset = opened(directory)
    found = {int.from_bytes(k, "big"): int.from_bytes(v[:8], "big") for k, v in rows.buffer("rows").scan(b"", None)}
    engine.close()
    for key, number in last_commits(offset).items():
        if found.get(key, 0) < number:
            raise SystemExit(f"row {key} is of commit {found.get(key)}, but offset {offset} claims commit {number}")
    if newest := max(found.values(), default=0) > reached + 1 or offset > reached + 1:
        raise SystemExit(f"rows up to {newest} and offset {offset}, but only {reached} commits were made")


def in_child(work: object) -> int:
    """Forks; the child does the work and ends, 0 if all was well. Returns its process id."""
    child = os.fork()
    if child:
        return child
    try:
        work()  # type: ignore[operator]
    except SystemExit as error:
        print(error, file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)


def main() -> int:
    directory, kills, rng = Path(sys.argv[1]), int(sys.argv[2]), random.Random(int(sys.argv[3]))
    progress = os.open(directory / "progress", os.O_RDWR | os.O_CREAT)
    set_back, made = 0, 0
    for _ in range(kills):
        writer = in_child(lambda: write_for_ever(directory, progress))
        time.sleep(rng.uniform(0.01, 0.12))
        os.kill(writer, signal.SIGKILL)
        _, status = os.waitpid(writer, 0)
        if os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
            return 1
        before, made = made, int.from_bytes(os.pread(progress, 8, 0), "big")
        set_back += made < before
        _, status = os.waitpid(in_child(lambda reached=made: check(directory, reached)), 0)
        if status:
            return 1
    print(json.dumps({"kills": kills, "set_back": set_back, "commits": made}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
