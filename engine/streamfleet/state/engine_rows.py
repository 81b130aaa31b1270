"""How the stores of a task share one engine: every row begins with the 2-byte number of its store.

    number (2) | the store's own key                 rows of stores
    0xFFFF | 'n' | store name                        -> its number, given once and never changed
    0xFFFF | 'f' | store name                        -> its StoreFacts
    0xFFFF | 'i'                                     -> identity: whose rows these are
    0xFFFF | 'o' | changelog topic                   -> offset of the last changelog record that the rows contain
    0xFFFF | 't' | changelog topic                   -> id of the topic that the offset belongs to

Used by StoreHome only.
"""

from __future__ import annotations

import itertools
import struct
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from streamfleet.errors import ForeignStateError, StateStoreError
from streamfleet.ports import StoreEngine
from streamfleet.state.dirty_buffer import DirtyBuffer, Row, write_batches
from streamfleet.state.rocksdb_engine import RocksDBEngine
from streamfleet.state.snapshot import SnapshotManifest

FORMAT_VERSION = 1

_OWN = b"\xff\xff"
_NAMES = _OWN + b"n"
_FACTS = _OWN + b"f"
_IDENTITY = _OWN + b"i"
_OFFSETS = _OWN + b"o"
_TOPIC_IDS = _OWN + b"t"
_MAX_STORES = 0xFFFF
_COPY_BATCH = 10_000
_NUMBER = struct.Struct(">H")
_OFFSET = struct.Struct(">q")
_FACTS_LAYOUT = struct.Struct(">qqqq")


class StoreFacts:
    """What a store must remember beside its rows. Saved with every commit, and read back after an abort."""

    __slots__ = ("entries", "observed_time", "saved", "sequence", "updates")

    def __init__(self, saved: bytes | None) -> None:
        self.saved = saved or _FACTS_LAYOUT.pack(-1, 0, 0, 0)
        self.reset()

    def reset(self) -> None:
        """Back to what was saved."""
        self.observed_time: int
        """The highest time the store was given, -1 at first: windowed stores expire by it."""
        self.sequence: int
        """Of the last row, in a store that retains duplicates."""
        self.entries: int
        """A guess at the number of rows, RocksDB's own way: puts less deletes ..."""
        self.updates: int
        """... and how many of them there were since the rows were last counted."""
        self.observed_time, self.sequence, self.entries, self.updates = _FACTS_LAYOUT.unpack(self.saved)

    def save(self) -> bytes | None:
        """The bytes to write, None if nothing has changed."""
        now = _FACTS_LAYOUT.pack(self.observed_time, self.sequence, self.entries, self.updates)
        if now == self.saved:
            return None
        self.saved = now
        return now


class Identity(msgspec.Struct, frozen=True):
    """Whose rows these are. Rows of another app or task must never be taken for one's own."""

    format_version: int
    application_id: str
    state_id: str


class EngineRows:
    """One engine, shared. Gives every store its buffer and facts, and commits all of them together."""

    def __init__(self, engine: StoreEngine, application_id: str, state_id: str) -> None:
        """`state_id` names what the rows are the state of; see StoreContext."""
        self.engine = engine
        self._buffers: list[DirtyBuffer] = []
        self._facts: dict[bytes, StoreFacts] = {}
        self._unsaved: list[Row] = []
        self._topic_ids: Mapping[str, str] = {}
        self._check_identity(Identity(FORMAT_VERSION, application_id, state_id))
        self._numbers: dict[bytes, int] = {
            key[len(_NAMES) :]: _NUMBER.unpack(number)[0] for key, number in engine.scan(_NAMES, _OWN + b"o")
        }

    def buffer(self, store_name: str) -> DirtyBuffer:
        buffer = DirtyBuffer(self.engine, self.prefix(store_name))
        self._buffers.append(buffer)
        return buffer

    def facts(self, store_name: str) -> StoreFacts:
        key = _FACTS + store_name.encode()
        facts = self._facts[key] = StoreFacts(self.engine.get(key))
        return facts

    def offsets(self) -> Iterator[tuple[str, int]]:
        """Changelog topic and the offset of the last record contained."""
        for key, offset in self.engine.scan(_OFFSETS, _OWN + b"p"):
            yield key[len(_OFFSETS) :].decode(), _OFFSET.unpack(offset)[0]

    def has_offset(self, topic: str) -> bool:
        return self.engine.get(_OFFSETS + topic.encode()) is not None

    def empty(self, store_name: str, former: Sequence[str] = ()) -> None:
        """Delete a store's rows if there are any: without an offset nobody knows what they contain, and replaying over them would
        bring deleted keys back. With them go the offsets of its `former` changelogs.
        """
        number = self._numbers.get(store_name.encode())
        if number is None:
            return
        low, high = _NUMBER.pack(number), _NUMBER.pack(number + 1)
        forgotten = [kind + topic.encode() for topic in former for kind in (_OFFSETS, _TOPIC_IDS)]
        if forgotten or next(self.engine.scan(low, high), None) is not None:
            self.engine.write((), forgotten, [(low, high)])
            self.engine.flush()

    def adopt(self, manifest: SnapshotManifest, directory: Path) -> None:
        """Take a snapshot over, in an order that a kill at any point leaves either without offset or complete."""
        engine = self.engine
        assert isinstance(engine, RocksDBEngine)
        name = manifest.store.encode()
        if name not in self._numbers and manifest.store_number not in self._numbers.values():
            self._numbers[name] = manifest.store_number
            self._unsaved.append((_NAMES + name, _NUMBER.pack(manifest.store_number)))
        number = self._number(name)
        engine.write(self._unsaved, (), [(_NUMBER.pack(number), _NUMBER.pack(number + 1))])
        self._unsaved = []
        engine.flush()
        files = [directory / file.name for file in manifest.files]
        if number == manifest.store_number:
            engine.ingest(files)
        else:
            self._copy_rows(files, _NUMBER.pack(number))
        topic = manifest.changelog.encode()
        facts = _FACTS_LAYOUT.pack(manifest.observed_time, 0, sum(file.rows for file in manifest.files), 0)
        anchor = [
            (_FACTS + name, facts),
            (_TOPIC_IDS + topic, manifest.changelog_topic_id.encode()),
            (_OFFSETS + topic, _OFFSET.pack(manifest.changelog_offset)),
        ]
        engine.write(anchor, (), ())
        engine.flush()

    def _copy_rows(self, files: list[Path], number: bytes) -> None:
        """The files' store number is taken by another store here: rows are rewritten under the own one."""
        with tempfile.TemporaryDirectory(prefix="streamfleet-snapshot-") as scratch:
            source = RocksDBEngine(Path(scratch) / "rows")
            try:
                source.ingest(files)
                rows = ((number + key[2:], value) for key, value in source.scan(b"", None))
                while batch := list(itertools.islice(rows, _COPY_BATCH)):
                    self.engine.write(batch, (), ())
            finally:
                source.close()

    def check_topics(self, topic_ids: Mapping[str, str]) -> None:
        """Refuse rows whose changelog was deleted and made again under its name: its offsets mean something else now.

        They are not wiped either, because the new topic may be empty.
        """
        self._topic_ids = topic_ids
        for topic, _ in self.offsets():
            recorded = self.engine.get(_TOPIC_IDS + topic.encode())
            current = topic_ids.get(topic)
            if recorded is not None and current is not None and recorded.decode() != current:
                raise StateStoreError(
                    f"changelog {topic} was deleted and created again since this state was written",
                    hint="reset the app, or restore the topic; the local state is left as it is",
                )

    def commit(self, offsets: Mapping[str, int]) -> None:
        last = self._unsaved
        last += [
            (_TOPIC_IDS + topic.encode(), self._topic_ids[topic].encode())
            for topic in offsets
            if topic in self._topic_ids
        ]
        last += [(key, saved) for key, facts in self._facts.items() if (saved := facts.save()) is not None]
        last += [(_OFFSETS + topic.encode(), _OFFSET.pack(offset)) for topic, offset in offsets.items()]
        write_batches(self.engine, self._buffers, last)
        self._unsaved = []

    def discard(self) -> None:
        for buffer in self._buffers:
            buffer.discard()
        for facts in self._facts.values():
            facts.reset()

    @property
    def uncommitted_bytes(self) -> int:
        return sum(buffer.size_bytes for buffer in self._buffers)

    def prefix(self, store_name: str) -> bytes:
        """What the rows of a store begin with."""
        return _NUMBER.pack(self._number(store_name.encode()))

    def _number(self, name: bytes) -> int:
        if name not in self._numbers:
            number = _first_free(self._numbers.values())
            if number >= _MAX_STORES:
                raise StateStoreError(f"a task cannot have more than {_MAX_STORES} stores")
            self._numbers[name] = number
            self._unsaved.append((_NAMES + name, _NUMBER.pack(number)))
        return self._numbers[name]

    def _check_identity(self, own: Identity) -> None:
        saved = self.engine.get(_IDENTITY)
        if saved is None:
            self._unsaved.append((_IDENTITY, msgspec.json.encode(own)))
            return
        try:
            found = msgspec.json.decode(saved, type=Identity)
        except msgspec.DecodeError as error:
            raise ForeignStateError(
                f"whose rows these are cannot be read, they should belong to task {own.state_id} of {own.application_id}",
                hint="they were written by something else: remove this directory, it is restored from the changelogs",
            ) from error
        if found != own:
            is_newer = found.format_version > own.format_version
            raise ForeignStateError(
                f"the rows here belong to task {found.state_id} of {found.application_id} (format {found.format_version}), "
                f"not to task {own.state_id} of {own.application_id} (format {own.format_version})",
                hint="run the newer version that wrote them, or remove this directory: it is restored from the changelogs"
                if is_newer
                else "give every app its own state.dir, or remove this directory: it is restored from the changelogs",
            )


class CommittedRows:
    """As EngineRows for a store that only reads: its buffer stays empty, its facts are those of the last commit."""

    def __init__(self, rows: EngineRows) -> None:
        self._rows = rows

    def buffer(self, store_name: str) -> DirtyBuffer:
        return DirtyBuffer(self._rows.engine, self._rows.prefix(store_name))

    def facts(self, store_name: str) -> StoreFacts:
        return StoreFacts(self._rows.engine.get(_FACTS + store_name.encode()))


def _first_free(taken: Iterable[int]) -> int:
    return max(taken, default=-1) + 1
