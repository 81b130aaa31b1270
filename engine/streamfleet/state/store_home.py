"""StoreHome: what the stores of one task share below their StoreContext: engines, record cache, changelogs.

TaskState makes one and opens all stores in it; a store that is opened alone makes its own. It knows nothing of kinds of stores.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Protocol, TypeVar

from streamfleet.state.api import StoreContext, StoreEngineKind
from streamfleet.state.changelog import ChangeLog, EachChange, LastChangePerKey
from streamfleet.state.dirty_buffer import DirtyBuffer
from streamfleet.state.engine_rows import CommittedRows, EngineRows, StoreFacts

ChangeLogT = TypeVar("ChangeLogT", bound=ChangeLog)


class RowSource(Protocol):
    """Where a store gets its buffer and its facts."""

    def buffer(self, store_name: str) -> DirtyBuffer: ...

    def facts(self, store_name: str) -> StoreFacts: ...


class RowsHome(Protocol):
    """What a store's rows are made from."""

    @property
    def context(self) -> StoreContext: ...

    @property
    def is_read_only(self) -> bool: ...

    def rows(self, kind: StoreEngineKind) -> RowSource: ...


class StoreHome:
    """`unlogged` names the stores whose changelog is written by somebody else (an input topic that serves as changelog)."""

    is_read_only = False

    def __init__(self, context: StoreContext, unlogged: Collection[str] = ()) -> None:
        self.context = context
        self.record_cache = context.caches.record
        self._unlogged = unlogged
        self._engines: dict[StoreEngineKind, EngineRows] = {}
        self._changelogs: list[ChangeLog] = []

    def rows(self, kind: StoreEngineKind) -> EngineRows:
        if kind not in self._engines:
            context = self.context
            self._engines[kind] = EngineRows(context.engine(kind), context.application_id, context.state_id)
        return self._engines[kind]

    def changelog(self, store_name: str, kind: Callable[[StoreContext, str], ChangeLogT]) -> ChangeLogT | None:
        """None if the store does not log."""
        if store_name in self._unlogged or self.context.changelog_topic(store_name) is None:
            return None
        changelog = kind(self.context, store_name)
        self._changelogs.append(changelog)
        return changelog

    @property
    def usual_changelog(self) -> type[LastChangePerKey | EachChange]:
        """The kind that the configuration asks for."""
        return LastChangePerKey if self.context.deduplicate_changelog else EachChange

    def check_topics(self, topic_ids: Mapping[str, str]) -> None:
        for rows in self._engines.values():
            rows.check_topics(topic_ids)

    def flush_changelogs(self) -> None:
        for changelog in self._changelogs:
            changelog.flush()

    def commit(self, offsets: Mapping[StoreEngineKind, Mapping[str, int]]) -> None:
        for kind, rows in self._engines.items():
            rows.commit(offsets.get(kind, {}))

    def offsets(self) -> dict[str, int]:
        return {topic: offset for rows in self._engines.values() for topic, offset in rows.offsets()}

    def discard(self) -> None:
        for rows in self._engines.values():
            rows.discard()
        for changelog in self._changelogs:
            changelog.discard()

    @property
    def uncommitted_bytes(self) -> int:
        return sum(rows.uncommitted_bytes for rows in self._engines.values())


class CommittedHome:
    """The home of read-only views: the same engines, without what is not committed."""

    is_read_only = True

    def __init__(self, home: StoreHome) -> None:
        self._home = home
        self.context = home.context

    def rows(self, kind: StoreEngineKind) -> RowSource:
        return CommittedRows(self._home.rows(kind))

    def offsets(self) -> dict[str, int]:
        return self._home.offsets()
