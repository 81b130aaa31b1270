"""A worker's databases against the changelogs: every store must equal the fold of its changelog up to its own offset.

Called by the checker when the workers are gone. That holds for all databases, also for those whose task has moved on: they are just
older. In the one that is newest, nothing of the changelog may be missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
from tests.ledger.app import STORES, LedgerStore
from tests.ledger.oracle import SHOWN, Anomaly

from streamfleet.ids import TopicPartition
from streamfleet.records import RawRecord
from streamfleet.state.engine_rows import EngineRows, Identity
from streamfleet.state.rocksdb_engine import RocksDBEngine

_IDENTITY = b"\xff\xffi"
_SEGMENT_BYTES = 8
_TIME_BYTES = 8
_SEQUENCE_BYTES = 4
_WINDOW_BYTES = _TIME_BYTES + _SEQUENCE_BYTES
_BASE, _INDEX = b"\x00", b"\x01"

Rows = dict[bytes, bytes]


@dataclass(frozen=True)
class StoreDump:
    """What one database holds of one store."""

    where: str
    store: LedgerStore
    changelog: TopicPartition
    offset: int
    """Of the last changelog record that the rows contain."""
    rows: Rows


def changelog_topic(application_id: str, store: str) -> str:
    return f"{application_id}-{store}-changelog"


def dump_worker(name: str, state_directory: Path, application_id: str) -> list[StoreDump]:
    dumps: list[StoreDump] = []
    for path in sorted((state_directory / application_id).glob("*_*")):
        if path.is_dir():
            dumps += _dump_task(name, path, application_id)
    return dumps


def _dump_task(worker: str, path: Path, application_id: str) -> list[StoreDump]:
    engine = RocksDBEngine(path)
    try:
        saved = engine.get(_IDENTITY)
        if saved is None:
            return []  # killed before anything was written
        identity = msgspec.json.decode(saved, type=Identity)
        rows = EngineRows(engine, application_id, identity.state_id)
        offsets = dict(rows.offsets())
        partition = int(path.name.rpartition("_")[2])
        return [
            StoreDump(
                f"{worker}/{path.name}/{store.name}",
                store,
                TopicPartition(topic, partition),
                offsets[topic],
                dict(_plain(store, rows.buffer(store.name).scan(b"", None))),
            )
            for store in STORES
            if store.layout != "memory" and (topic := changelog_topic(application_id, store.name)) in offsets
        ]
    finally:
        engine.close()


def _plain(store: LedgerStore, rows: Iterable[tuple[bytes, bytes]]) -> Iterable[tuple[bytes, bytes]]:
    """Rows under the keys that the changelog has."""
    for key, value in rows:
        if store.layout == "key_value":
            yield key, value
        elif store.layout == "window":
            yield key[_SEGMENT_BYTES:], value
        elif key[_SEGMENT_BYTES : _SEGMENT_BYTES + 1] == _BASE:
            inner = key[_SEGMENT_BYTES + 1 :]
            yield inner[_TIME_BYTES:-_SEQUENCE_BYTES] + inner[:_TIME_BYTES] + inner[-_SEQUENCE_BYTES:], value


def fold_changelog(records: Iterable[RawRecord], up_to: int, *, is_timestamped: bool = True) -> Rows:
    """What the rows must be after the record with that offset: the last value of each key, behind its timestamp if it has one."""
    rows: Rows = {}
    for record in records:
        if record.offset > up_to:
            break
        assert record.key is not None
        if record.value is None:
            rows.pop(record.key, None)
        else:
            stamp = record.timestamp.to_bytes(_TIME_BYTES, "big", signed=True) if is_timestamped else b""
            rows[record.key] = stamp + record.value
    return rows


def check_dump(dump: StoreDump, changelog: Iterable[RawRecord]) -> list[Anomaly]:
    wanted, rows = fold_changelog(changelog, dump.offset, is_timestamped=dump.store.is_timestamped), dump.rows
    if dump.store.retention_ms is not None:
        expired = _expired(wanted, dump.store.retention_ms)
        wanted, rows = ({key: value for key, value in each.items() if key not in expired} for each in (wanted, rows))
    if wanted == rows:
        return []
    differing = [key for key in wanted.keys() | rows.keys() if wanted.get(key) != rows.get(key)]
    shown = [f"{key!r}: {rows.get(key)!r}, must be {wanted.get(key)!r}" for key in sorted(differing)[:SHOWN]]
    detail = f"{len(differing)} of {len(wanted)} rows differ at offset {dump.offset}: {'; '.join(shown)}"
    return [Anomaly("store differs from changelog", dump.where, detail)]


def _expired(rows: Rows, retention_ms: int) -> set[bytes]:
    """Rows that may be gone by now, or still be there: they go in segments."""
    starts = {key: int.from_bytes(key[-_WINDOW_BYTES:-_SEQUENCE_BYTES], "big") for key in rows}
    newest = max(starts.values(), default=0)
    return {key for key, start in starts.items() if start <= newest - retention_ms}


def check_newest(dumps: Iterable[StoreDump], changelogs: Mapping[TopicPartition, list[RawRecord]]) -> list[Anomaly]:
    """After a clean end of all workers the last owner's store has everything. `changelogs` of stores that are on disk."""
    newest: dict[TopicPartition, int] = {}
    for dump in dumps:
        newest[dump.changelog] = max(dump.offset, newest.get(dump.changelog, -1))
    return [
        Anomaly("store lacks changelog records", str(partition), f"newest store at {reached}, last record at {last}")
        for partition, records in changelogs.items()
        if records and (reached := newest.get(partition, -1)) < (last := records[-1].offset)
    ]
