"""RocksDBEngine: a StoreEngine on disk, one database per task. The only module that imports rocksdict.

The write-ahead log is off: what must survive a crash is in the changelog topic, and `flush` makes rows durable where that is not
enough. A database that is closed while a scan is open would keep its lock, so open scans are ended first.
"""

from __future__ import annotations

import weakref
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import rocksdict

from streamfleet.errors import DiskFullError, StateStoreError, StoreDamagedError, StoreUnavailableError

MAX_UNFLUSHED_RANGE_DELETES = 200
"""Range deletes in the memtable slow reads down; a flush turns them into file metadata."""


class RocksDBMemory:
    """The block cache and the write buffers, shared by all databases of a process so that their sum has a limit."""

    def __init__(self, block_cache_bytes: int = 64 * 2**20, write_buffer_bytes: int = 64 * 2**20) -> None:
        self.cache = rocksdict.Cache(block_cache_bytes)
        self.write_buffers = rocksdict.WriteBufferManager(write_buffer_bytes, allow_stall=False)


@dataclass(frozen=True)
class RocksDBOptions:
    """How a task's database is tuned. One value for all tasks of a process."""

    memory: RocksDBMemory | None = None
    """None: RocksDB's own cache and buffers, for each database."""
    memtable_bytes: int = 16 * 2**20
    memtables: int = 3
    bloom_bits_per_key: int = 10
    log_files: int = 1

    def build(self) -> rocksdict.Options:
        options = rocksdict.Options(raw_mode=True)
        options.create_if_missing(True)
        options.set_compression_type(rocksdict.DBCompressionType.none())
        options.set_write_buffer_size(self.memtable_bytes)
        options.set_max_write_buffer_number(self.memtables)
        options.set_keep_log_file_num(self.log_files)
        blocks = rocksdict.BlockBasedOptions()
        blocks.set_bloom_filter(self.bloom_bits_per_key, block_based=False)
        if self.memory is not None:
            blocks.set_block_cache(self.memory.cache)
            options.set_write_buffer_manager(self.memory.write_buffers)
        options.set_block_based_table_factory(blocks)
        return options


class RocksDBEngine:
    """Rows in one column family of the database at `path`, which is created if it is not there."""

    def __init__(self, path: Path, options: RocksDBOptions | None = None) -> None:
        self.path = path
        self._db = _open(path, options or RocksDBOptions())
        self._write_options = rocksdict.WriteOptions()
        self._write_options.disable_wal = True  # type: ignore[assignment,method-assign]  # a property, the stubs say method
        self._scans: weakref.WeakSet[Generator[tuple[bytes, bytes]]] = weakref.WeakSet()
        self._unflushed_range_deletes = 0

    def get(self, key: bytes) -> bytes | None:
        try:
            value: bytes | None = self._db.get(key)
        except Exception as error:
            raise self._failure("read", error) from error
        return value

    def scan(self, start: bytes, end: bytes | None, *, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        scan = self._scan(start, end, reverse=reverse)
        self._scans.add(scan)
        return scan

    def write(
        self,
        puts: Iterable[tuple[bytes, bytes]],
        deletes: Iterable[bytes],
        range_deletes: Iterable[tuple[bytes, bytes]],
    ) -> None:
        batch = rocksdict.WriteBatch(raw_mode=True)
        for start, end in range_deletes:
            batch.delete_range(start, end)
            self._unflushed_range_deletes += 1
        for key in deletes:
            batch.delete(key)
        for key, value in puts:
            batch.put(key, value)
        try:
            self._db.write(batch, self._write_options)
        except Exception as error:
            raise self._failure("write", error) from error
        if self._unflushed_range_deletes > MAX_UNFLUSHED_RANGE_DELETES:
            self.flush()

    def ingest(self, files: Sequence[Path]) -> None:
        """Take over sorted table files, by copy; they are left as they are. Rows written before are overwritten by theirs."""
        options = rocksdict.IngestExternalFileOptions()
        options.set_move_files(False)
        try:
            self._db.ingest_external_file([str(file) for file in files], options)
        except Exception as error:
            raise self._failure("ingest files into", error) from error

    def flush(self) -> None:
        try:
            self._db.flush(wait=True)
        except Exception as error:
            raise self._failure("flush", error) from error
        self._unflushed_range_deletes = 0

    def close(self) -> None:
        for scan in list(self._scans):
            scan.close()
        try:
            self._db.close()
        except Exception as error:
            raise self._failure("close", error) from error

    def _scan(self, start: bytes, end: bytes | None, *, reverse: bool) -> Generator[tuple[bytes, bytes]]:
        bounds = rocksdict.ReadOptions()
        if end is not None:
            bounds.set_iterate_upper_bound(end)
        # No lower bound: in rocksdict 0.3.29 setting one sets the upper one. Backwards, keys are compared here instead.
        try:
            rows = self._db.iter(bounds)
        except Exception as error:
            raise self._failure("read", error) from error
        if reverse:
            rows.seek_to_last()
            while rows.valid() and (key := rows.key()) >= start:
                yield key, rows.value()
                rows.prev()
        else:
            rows.seek(start)
            while rows.valid():
                yield rows.key(), rows.value()
                rows.next()
        try:
            rows.status()  # a scan that meets a damaged block just ends
        except Exception as error:
            del (
                rows
            )  # who keeps the error keeps this frame, and an iterator in it would keep the lock of a closed database
            raise self._failure("read", error) from error

    def _failure(self, verb: str, error: Exception) -> StateStoreError:
        if isinstance(error, rocksdict.DbClosedError):
            return StoreUnavailableError(f"cannot {verb}: the database at {_name(self.path)} is closed")
        return _translated(verb, self.path, error)


def write_table_file(path: Path, rows: Iterable[tuple[bytes, bytes]]) -> None:
    """A sorted table file that `ingest` takes; the keys must come in order, each once."""
    writer = rocksdict.SstFileWriter(RocksDBOptions().build())
    writer.open(str(path))
    for key, value in rows:
        writer[key] = value
    writer.finish()


def _open(path: Path, options: RocksDBOptions) -> rocksdict.Rdict:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return rocksdict.Rdict(str(path), options=options.build())
    except Exception as error:
        raise _translated("open", path, error) from error


def _name(path: Path) -> str:
    """Where it is, from state.dir on: the app's directory and the task's."""
    return f"{path.parent.name}/{path.name}"


def _translated(verb: str, path: Path, error: Exception) -> StateStoreError:
    detail = " ".join(str(error).replace(str(path), _name(path)).split())
    fact, hint = f"cannot {verb} the database at {_name(path)}: {detail}", _hint(detail)
    if hint is _DAMAGED:
        return StoreDamagedError(fact, hint=hint, directory=path)
    if hint is _FULL:
        return DiskFullError(fact, hint=hint, directory=path)
    return StateStoreError(fact, hint=hint)


_DAMAGED = "its files are damaged; remove this directory, the rows are restored from the changelog topics"
_FULL = "free some disk space (or inodes), or move state.dir to a larger disk"


def _hint(message: str) -> str:
    """What to do, found by the words RocksDB uses; it has no error codes at this border."""
    text = message.lower()
    # Before damage: RocksDB calls it corruption, too, if a file could not be opened for one of these reasons.
    if "permission denied" in text or "read-only file system" in text:
        return "make state.dir writable for the user that runs this process, or choose another one"
    if "too many open files" in text:
        return "raise the limit of open files for this process (ulimit -n)"
    if "no space" in text or "file too large" in text or "quota exceeded" in text:
        return _FULL
    if "corruption" in text or "no such file" in text:
        return _DAMAGED
    if "lock" in text:
        return "it is in use by another process or was not closed; give every process its own state.dir"
    return (
        "check the disk, then start again; the rows are restored from the changelog topics if the directory is removed"
    )
