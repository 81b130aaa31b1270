"""What a worker remembers of its app between runs: the topics it reads and the internal topics it made. Read by the
reset command.

Kept in the app's state directory and only ever added to, so that the topics of an older version of the app are still
known when it is reset. Names are recorded, never guessed: app `a` with store `b-c` and app `a-b` with store `c` share
the prefix `a-b`, and whoever deletes by prefix deletes the other's state.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from streamfleet.errors import StateStoreError
from streamfleet.topology.nodes import SourceNode
from streamfleet.topology.topology import NO_EPOCHS, Topology

FILE_NAME = "app-record.json"


class AppRecord(msgspec.Struct, frozen=True):
    application_id: str
    input_topics: tuple[str, ...] = ()
    input_patterns: tuple[str, ...] = ()
    internal_topics: tuple[str, ...] = ()
    is_reset_pending: bool = False
    """A reset was begun and is not known to be finished."""
    committed_before_reset: tuple[tuple[str, int, int], ...] = ()
    """Topic, partition, offset: what that reset has deleted, for the one that finishes it."""

    def including(self, other: AppRecord) -> AppRecord:
        """Both together; what is said of a reset stays as it is here."""
        return AppRecord(
            self.application_id,
            _merged(self.input_topics, other.input_topics),
            _merged(self.input_patterns, other.input_patterns),
            _merged(self.internal_topics, other.internal_topics),
            self.is_reset_pending,
            self.committed_before_reset,
        )


def record_of(topology: Topology, application_id: str, epochs: Mapping[str, int] = NO_EPOCHS) -> AppRecord:
    """What a topology reads and makes; needs no broker, because names do not depend on partition counts."""
    sources = [node for node in topology.nodes.values() if isinstance(node, SourceNode)]
    repartition = set(topology.repartition_topics)
    changelogs = {
        topology.changelog_topic(store, application_id, epochs)
        for store in topology.stores
        if store not in topology.source_changelogs
    }
    return AppRecord(
        application_id,
        input_topics=_merged(topic for source in sources for topic in source.topics if topic not in repartition),
        input_patterns=_merged(source.pattern.pattern for source in sources if source.pattern is not None),
        internal_topics=_merged(
            (topology.topic_name(topic, application_id) for topic in repartition),
            (changelog for changelog in changelogs if changelog is not None),
        ),
    )


def _merged(*groups: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({name for group in groups for name in group}))


class AppRecordFile:
    def __init__(self, directory: Path) -> None:
        self._path = directory / FILE_NAME

    def load(self) -> AppRecord | None:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=AppRecord)
        except FileNotFoundError:
            return None
        except msgspec.DecodeError as error:
            raise StateStoreError(
                f"{self._path} does not hold an app record ({error})",
                hint="delete the file; the next run writes it anew",
            ) from error
        except OSError as error:
            raise StateStoreError(
                f"{self._path} cannot be read ({error.strerror})", hint="check its permissions"
            ) from error

    def save(self, record: AppRecord) -> None:
        """Replaced as a whole: a reader sees the old record or the new one."""
        draft = self._path.with_name(f"{FILE_NAME}.{os.getpid()}")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            draft.write_bytes(msgspec.json.format(msgspec.json.encode(record)) + b"\n")
            draft.replace(self._path)
        except OSError as error:
            raise StateStoreError(
                f"{self._path} cannot be written ({error.strerror})",
                hint="set state.dir to a directory this user may write to",
            ) from error

    def add(self, record: AppRecord) -> AppRecord:
        """Remember this too; returns the whole."""
        known = self.load()
        whole = record if known is None else known.including(record)
        if whole != known:
            self.save(whole)
        return whole
