"""What a store of a task holds, as sums that can be compared with its changelog. Asked by the worker's /digest pages, for audits.

    hash     BLAKE2b, 8 bytes, of: length of the key (4, big endian) | timestamp (8, signed; -2^63 if rows keep none) | key | value
    bucket   CRC-32 of the key, last 8 bits
    digest   per bucket: how many rows, xor and sum (mod 2^64) of their hashes

Keys and values are those of the changelog topic. What is read is one commit, under either guarantee: its rows contain the
changelog up to and including `offset`, and nothing after it. The scan is of a moment (RocksDB's iterators are), and goes on in
pieces between which commits and a close get their turn; rows in memory have no such scan and are copied at once.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice

from streamfleet.assignment.snapshot import MemberReport, Plan
from streamfleet.errors import ScanTooLargeError, StoreDamagedError, StoreUnavailableError
from streamfleet.query.local_queries import Threads
from streamfleet.query.store_catalogue import StorePlace
from streamfleet.state.committed_stores import CommittedStores
from streamfleet.state.dirty_buffer import Row
from streamfleet.state.logged_rows import TIMESTAMP_SIZE
from streamfleet.state.own_store import OwnStore
from streamfleet.state.rows_api import BottomRows
from streamfleet.task.phases import TaskPhase
from streamfleet.task.standby_task import StandbyTask
from streamfleet.task.stream_task import StreamTask
from streamfleet.thread.stream_thread import StreamThread

BUCKETS = 256
PIECE_ROWS = 2000
MAX_LISTED_ROWS = 200_000

_NO_TIMESTAMP = (-(2**63)).to_bytes(TIMESTAMP_SIZE, "big", signed=True)
_LENGTH = struct.Struct(">i")
_MASK = 2**64 - 1

HashedRow = tuple[bytes, int]
"""Raw key and (unsigned) hash."""


@dataclass(frozen=True)
class Moment:
    """Which state was read."""

    store: str
    partition: int
    changelog: str
    offset: int | None
    """Of the last changelog record that the rows contain; None: of none."""
    timestamps: bool
    """Whether hashes include them."""
    oldest_ms: int | None
    """Rows with an earlier window start (session: end) are hidden, even if the changelog still has them; None: no windows."""
    is_active: bool


@dataclass(frozen=True)
class StoreDigest:
    moment: Moment
    buckets: dict[int, tuple[int, int, int]]


@dataclass(frozen=True)
class ListedRows:
    moment: Moment
    rows: list[HashedRow]


def digest(place: StorePlace, partition: int, threads: Threads) -> StoreDigest:
    """Raises StoreUnavailableError if the task is not here, or its store cannot be compared."""
    sums: dict[int, tuple[int, int, int]] = {}
    thread, task = _task(place, partition, threads)
    with _handing_over_damage(thread, task):
        moment, rows = _hashed_rows(place, partition, task)
        for key, hashed in rows:
            bucket = bucket_of(key)
            count, xor, total = sums.get(bucket, (0, 0, 0))
            sums[bucket] = (count + 1, xor ^ hashed, (total + hashed) & _MASK)
    return StoreDigest(moment, sums)


def rows_of(place: StorePlace, partition: int, buckets: Sequence[int], threads: Threads) -> ListedRows:
    """The rows of some buckets. Raises as `digest`, and ScanTooLargeError."""
    wanted = frozenset(buckets)
    thread, task = _task(place, partition, threads)
    with _handing_over_damage(thread, task):
        moment, rows = _hashed_rows(place, partition, task)
        listed = list(islice((row for row in rows if bucket_of(row[0]) in wanted), MAX_LISTED_ROWS + 1))
    if len(listed) > MAX_LISTED_ROWS:
        raise ScanTooLargeError(f"these buckets have more than {MAX_LISTED_ROWS} rows", hint="ask for fewer buckets")
    return ListedRows(moment, listed)


@contextmanager
def _handing_over_damage(thread: StreamThread[MemberReport, Plan], task: StreamTask | StandbyTask) -> Iterator[None]:
    """Who reads may be the first to meet a damaged block, and processing may never come to it: the task's owner is told."""
    try:
        yield
    except StoreDamagedError as error:
        thread.report_damage(task, error)
        raise


def bucket_of(key: bytes) -> int:
    return zlib.crc32(key) & (BUCKETS - 1)


def _hashed_rows(
    place: StorePlace, partition: int, task: StreamTask | StandbyTask
) -> tuple[Moment, Iterator[HashedRow]]:
    stores = task.committed_stores
    if stores is None:
        raise StoreUnavailableError(f"the state of task {task.task_id} is not open", hint="ask again")
    with stores.reading():
        view = stores.store(place.name)
        if not isinstance(view, OwnStore):
            raise StoreUnavailableError(
                f"store {place.name} is of a kind that cannot be compared with its changelog",
                hint="key-value, window and session stores can",
            )
        bottom = view.bottom
        offset = stores.changelog_offsets().get(place.changelog)
        is_active = isinstance(task, StreamTask) and task.phase is TaskPhase.RUNNING
        keeps = view.keeps_timestamps
        moment = Moment(place.name, partition, place.changelog, offset, keeps, bottom.oldest_readable_ms, is_active)
        scan = bottom.buffer.scan(b"", None)
        first = list(scan) if not view.is_persistent else list(islice(scan, PIECE_ROWS))
    stamp_size = TIMESTAMP_SIZE if view.is_timestamped else 0
    return moment, _hashes(_rows(first, scan, stores), bottom, stamp_size, keeps=keeps)


def _rows(first: list[Row], scan: Iterator[Row], stores: CommittedStores) -> Iterator[Row]:
    piece = first
    while piece:
        yield from piece
        with stores.reading():  # whoever wants to close the database waits for this, and ends the scan afterwards
            piece = list(islice(scan, PIECE_ROWS))


def _hashes(rows: Iterator[Row], bottom: BottomRows, stamp_size: int, *, keeps: bool) -> Iterator[HashedRow]:
    raw_key: Callable[[bytes], bytes | None] = bottom.raw_key
    for stored, value in rows:
        key = raw_key(stored)
        if key is None:
            continue
        stamp = value[:TIMESTAMP_SIZE] if keeps else _NO_TIMESTAMP
        hashed = blake2b(_LENGTH.pack(len(key)) + stamp + key + value[stamp_size:], digest_size=8).digest()
        yield key, int.from_bytes(hashed, "big")


def _task(
    place: StorePlace, partition: int, threads: Threads
) -> tuple[StreamThread[MemberReport, Plan], StreamTask | StandbyTask]:
    if place.sub_topology is None:
        raise StoreUnavailableError(f"store {place.name} is global and has no changelog", hint="compare its topic")
    if not place.is_logged:
        raise StoreUnavailableError(f"store {place.name} has no changelog", hint="there is nothing to compare with")
    task_id = place.task(partition)
    for thread in threads():
        task = thread.tasks.tasks.get(task_id) or thread.tasks.standbys.tasks.get(task_id)
        if task is not None:
            return thread, task
    raise StoreUnavailableError(f"task {task_id} is not here", hint="ask its owner")
