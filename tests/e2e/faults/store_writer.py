"""Writes a task's database and is killed while it does: `python -m tests.e2e.faults.store_writer DIRECTORY KILLS SEED`.

Run by test_store_writes.py, in a process of its own because it forks: RocksDB is opened in children only. Each commit has a number.
It sets some rows to that number, and the changelog offset, too, so that what must be there follows from the offset. Buffers and
batches are made small: a kill shall find databases whose rows have reached the disk in part, and commits of several batches.

Prints one JSON line: how many kills, how many of them lost commits, how many commits there were. If a row is wrong, it says which,
and ends with 1.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from streamfleet.state import dirty_buffer
from streamfleet.state.engine_rows import EngineRows
from streamfleet.state.rocksdb_engine import RocksDBEngine, RocksDBOptions

CHANGELOG = "app-rows-changelog"
KEYS = 300
PADDING = b"." * 200
SMALL_MEMTABLE_BYTES = 64 * 2**10
SMALL_BATCH_BYTES = 8 * 2**10
LIFE_SECONDS = 0.01, 0.12
MADE, KEPT = 0, 8
"""Places in the progress file: the last commit that was made, the last one that was found afterwards."""


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


def write(rows: EngineRows, numbers: Iterable[int]) -> Iterator[int]:
    """One commit after the other; yields the number of each that was made."""
    buffer = rows.buffer("rows")
    for number in numbers:
        for key in touched(number):
            buffer.put(key.to_bytes(4, "big"), number.to_bytes(8, "big") + PADDING)
        rows.commit({CHANGELOG: number})
        yield number


def write_for_ever(directory: Path, progress: int) -> None:
    _, rows, offset = opened(directory)
    for number in write(rows, itertools.count(offset + 1)):
        _note(progress, MADE, number)


def check(directory: Path, progress: int) -> None:
    """No row may be older than the offset says, and none newer than what was written. Notes the offset."""
    engine, rows, offset = opened(directory)
    found = _numbers(rows)
    engine.close()
    for key, number in last_commits(offset).items():
        if found.get(key, 0) < number:
            raise SystemExit(f"row {key} is of commit {found.get(key)}, but offset {offset} claims commit {number}")
    made = _read(progress, MADE)
    newest = max(found.values(), default=0)
    if max(newest, offset) > made + 1:
        raise SystemExit(f"rows up to {newest} and offset {offset}, but only {made} commits were made")
    _note(progress, KEPT, offset)


def replay(directory: Path, up_to: int) -> None:
    """What a restore does: behind it, the rows are those of a run that nobody disturbed."""
    engine, rows, offset = opened(directory)
    for _ in write(rows, range(offset + 1, up_to + 1)):
        pass
    found = _numbers(rows)
    engine.close()
    if found != last_commits(max(offset, up_to)):
        raise SystemExit(f"the rows after a replay up to {up_to} are not those of {up_to} commits")


def _numbers(rows: EngineRows) -> dict[int, int]:
    return {int.from_bytes(k, "big"): int.from_bytes(v[:8], "big") for k, v in rows.buffer("rows").scan(b"", None)}


def _note(progress: int, place: int, number: int) -> None:
    os.pwrite(progress, number.to_bytes(8, "big"), place)


def _read(progress: int, place: int) -> int:
    return int.from_bytes(os.pread(progress, 8, place), "big")


def in_child(work: Callable[[], None]) -> int:
    """Forks; the child does the work and ends, with 0 if all was well. Returns its process id."""
    child = os.fork()
    if child:
        return child
    try:
        work()
    except BaseException as error:
        print(repr(error), file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)


def status_of(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main() -> int:
    directory, kills, rng = Path(sys.argv[1]), int(sys.argv[2]), random.Random(int(sys.argv[3]))
    progress = os.open(directory / "progress", os.O_RDWR | os.O_CREAT)
    dirty_buffer.MAX_BATCH_BYTES = SMALL_BATCH_BYTES
    set_back = 0
    for _ in range(kills):
        writer = in_child(lambda: write_for_ever(directory, progress))
        time.sleep(rng.uniform(*LIFE_SECONDS))
        os.kill(writer, signal.SIGKILL)
        if status_of(writer) != -signal.SIGKILL or status_of(in_child(lambda: check(directory, progress))):
            return 1
        set_back += _read(progress, KEPT) < _read(progress, MADE)
    made = _read(progress, MADE)
    if status_of(in_child(lambda: replay(directory, made))):
        return 1
    print(json.dumps({"kills": kills, "set_back": set_back, "commits": made}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
