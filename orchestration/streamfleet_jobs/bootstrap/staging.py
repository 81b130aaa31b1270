"""Sorted rows become table files (SST) where workers will look for them, and are read back from there. Called by job.py and
verification.py; the manifest, which makes them count, comes last (verification.py).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from streamfleet.state.rocksdb_engine import RocksDBEngine, write_table_file
from streamfleet.state.snapshot import snapshot_directory
from streamfleet_jobs.bootstrap.rows import store_value
from streamfleet_jobs.bootstrap.spec import BootstrapSpec

ROWS_PER_FILE = 1_000_000

Row = tuple[bytes, bytes, int]
"""Key, value and timestamp, as the changelog has them."""


def computed_files(root: Path, partition: int) -> list[Path]:
    return sorted((root / f"partition={partition}").glob("*.parquet"))


def computed_rows(root: Path, partition: int) -> Iterator[Row]:
    for file in computed_files(root, partition):
        for batch in pq.ParquetFile(file).iter_batches(columns=["key", "value", "timestamp"]):
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def newest_time(root: Path, partition: int) -> int | None:
    """The largest timestamp of a partition's rows; None: it has none."""
    files = computed_files(root, partition)
    times = [pc.max(pq.read_table(file, columns=["timestamp"])["timestamp"]).as_py() for file in files]
    return max((time for time in times if time is not None), default=None)


def table_directory(spec: BootstrapSpec, partition: int) -> Path:
    return snapshot_directory(spec.snapshot_directory, spec.changelog, partition)


def stage(spec: BootstrapSpec, computed: Path, partition: int) -> list[tuple[Path, int]]:
    """Write one partition's table files; with how many rows each. A partition without rows has none."""
    directory = table_directory(spec, partition)
    directory.mkdir(parents=True, exist_ok=True)
    for former in directory.glob("*.sst"):
        former.unlink()
    prefix = spec.store.number.to_bytes(2, "big")
    rows = ((prefix + key, store_value(value, time)) for key, value, time in computed_rows(computed, partition))
    files: list[tuple[Path, int]] = []
    while first := next(rows, None):
        path = directory / f"{len(files):06d}.sst"
        counted = _Counted(first, rows)
        write_table_file(path, counted)
        files.append((path, counted.rows))
    return files


class _Counted:
    """At most a file's worth of rows, counted."""

    def __init__(self, first: tuple[bytes, bytes], rows: Iterator[tuple[bytes, bytes]]) -> None:
        self._first, self._rest, self.rows = first, rows, 0

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        row: tuple[bytes, bytes] | None = self._first
        while row is not None:
            yield row
            self.rows += 1
            row = next(self._rest, None) if self.rows < ROWS_PER_FILE else None


def staged_rows(files: list[Path]) -> Iterator[tuple[bytes, bytes]]:
    """What the table files hold, read as a worker reads them: taken into a database. Keys are the store's own."""
    if not files:
        return
    with tempfile.TemporaryDirectory(prefix="streamfleet-bootstrap-") as scratch:
        engine = RocksDBEngine(Path(scratch) / "rows")
        try:
            engine.ingest(files)
            for key, value in engine.scan(b"", None):
                yield key[2:], value
        finally:
            engine.close()
