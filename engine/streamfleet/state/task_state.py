"""TaskState: all stores of one task, from opening to commit or abort. Owned by the task; the engines belong to its context.

open -> (process ... flush_caches -> log_changes -> commit)* -> close
                discard: back to the last commit
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import structlog

from streamfleet.errors import RecordError, StateStoreError, StreamsError
from streamfleet.ids import TopicPartition
from streamfleet.ports import StoreEngine
from streamfleet.state.api import StateStore, StoreBuilder, StoreContext, StoreEngineKind
from streamfleet.state.changelog_names import is_changelog_of
from streamfleet.state.committed_stores import CommittedStores
from streamfleet.state.engine_rows import EngineRows
from streamfleet.state.lost_rows import count_lost_rows
from streamfleet.state.snapshot import SnapshotMismatchError, find_snapshot, load_snapshot
from streamfleet.state.store_home import StoreHome
from streamfleet.state.task_store import TaskStore

log = structlog.get_logger(__name__)


class StoreDescription(Protocol):
    """A store with the topic that restores it: topology.nodes.StoreEntry."""

    @property
    def name(self) -> str: ...

    @property
    def builder(self) -> StoreBuilder[StateStore]: ...

    @property
    def changelog(self) -> str | None: ...

    @property
    def source_is_changelog(self) -> bool: ...


class TaskState:
    """Opens the stores in the given order, which is also that of flushing."""

    def __init__(
        self,
        context: StoreContext,
        entries: Sequence[StoreDescription],
        topic_ids: Mapping[str, str] | None = None,
        snapshots: Path | None = None,
    ) -> None:
        """`topic_ids` are those that the changelog topics have now, where they are known; `snapshots` is where to look for rows
        that need not be replayed.
        """
        self._topic_ids = topic_ids or {}
        self._snapshots = snapshots
        unlogged = {entry.name for entry in entries if entry.source_is_changelog or entry.changelog is None}
        self._changelogs = {entry.changelog for entry in entries}
        self._home = StoreHome(context, unlogged)
        self._kinds: dict[str, StoreEngineKind] = {}
        self.stores: dict[str, StateStore] = {}
        self.committed = CommittedStores(self._home, self.stores)
        try:
            for entry in entries:
                self._anchor(context, entry)
                self._open(context, entry)
            self._home.check_topics(self._topic_ids)
        except BaseException:
            self.close()
            raise

    def _anchor(self, context: StoreContext, entry: StoreDescription) -> None:
        """A store on disk that has no offset has nothing that could be trusted: it begins empty, or with a snapshot."""
        if entry.changelog is None or getattr(entry.builder, "kind", None) != "rocksdb":
            return
        rows = self._home.rows("rocksdb")
        if rows.has_offset(entry.changelog):
            return
        rows.empty(entry.name, former=self._former_changelogs(context, rows, entry.name))
        partition = context.task_id.partition
        directory = None if self._snapshots is None else find_snapshot(self._snapshots, entry.changelog, partition)
        if directory is None:
            return
        try:
            manifest = load_snapshot(directory, context.application_id, entry.changelog, partition, self._topic_ids)
        except SnapshotMismatchError as error:
            log.warning(
                "snapshot not used, the changelog is replayed", store=entry.name, partition=partition, why=str(error)
            )
            return
        rows.adopt(manifest, directory)
        log.info("snapshot taken over", store=entry.name, partition=partition, offset=manifest.changelog_offset)

    def _former_changelogs(self, context: StoreContext, rows: EngineRows, store: str) -> list[str]:
        """Of other epochs: their offsets say nothing about the rows that come now, and would be believed by who goes back."""
        return [
            topic
            for topic, _ in rows.offsets()
            if topic not in self._changelogs and is_changelog_of(topic, context.application_id, store)
        ]

    def _open(self, context: StoreContext, entry: StoreDescription) -> None:
        store = entry.builder.build()
        if isinstance(store, TaskStore):
            store.open_in(self._home)
        else:
            store.open(context)
        self.stores[entry.name] = store
        if entry.changelog is not None:
            kind: Any = getattr(entry.builder, "kind", "in_memory")
            self._kinds[entry.changelog] = kind

    def flush_caches(self) -> None:
        """Forward what caching held back. What a store forwards may change stores after it, never before it. A failure does not
        keep the stores after it from being flushed; the first one is raised at the end.
        """
        first: StreamsError | None = None
        for name, store in self.stores.items():
            try:
                store.flush_cache()
            except Exception as error:
                first = first or _flush_failure(name, error)
        if first is not None:
            raise first

    def log_changes(self) -> None:
        """Send the changelog records that were held back until the commit, if they are."""
        for store in self._own_stores():
            store.settle()
        self._home.flush_changelogs()

    def commit(
        self, changelog_offsets: Mapping[str, int], position: Mapping[TopicPartition, int] | None = None
    ) -> None:
        """Make the changes since the last commit part of the rows, together with the offset of the last record sent to each
        changelog topic (or read from it, in a restore). `position` is how far the inputs were processed for them, if known.
        """
        offsets: dict[StoreEngineKind, dict[str, int]] = {}
        for topic, offset in changelog_offsets.items():
            if topic not in self._kinds:
                raise StateStoreError(
                    f"{topic} is not a changelog of this task; it has {', '.join(sorted(self._kinds)) or 'none'}"
                )
            offsets.setdefault(self._kinds[topic], {})[topic] = offset
        with self.committed.writing(position):
            self._home.commit(offsets)

    def changelog_offsets(self) -> dict[str, int]:
        """Where each changelog topic was at the last commit: a restore goes on after that. Missing: from the beginning."""
        return self._home.offsets()

    def lost_rows(self, former: StoreEngine) -> int:
        """How many rows of stores with a changelog are in a former database of this task and not in the present one."""
        context, now = self._home.context, self._home.rows("rocksdb")
        then = EngineRows(former, context.application_id, context.state_id)
        names = [name for name in self.stores if self._kinds.get(context.changelog_topic(name) or "") == "rocksdb"]
        return sum(count_lost_rows(former, then.prefix(name), now.engine, now.prefix(name)) for name in names)

    def discard(self) -> None:
        """Abort: forget all changes since the last commit, and what caches hold."""
        self._home.discard()
        for store in self._own_stores():
            store.discard()

    @property
    def uncommitted_bytes(self) -> int:
        """About how much memory the changes since the last commit take."""
        return self._home.uncommitted_bytes + sum(store.unsettled_bytes for store in self._own_stores())

    def _own_stores(self) -> Iterator[TaskStore]:
        return (store for store in self.stores.values() if isinstance(store, TaskStore))

    def close(self) -> None:
        """Close the stores without committing: what is not committed is restored from the changelogs."""
        self.committed.close()
        for store in self.stores.values():
            store.close()


def _flush_failure(name: str, error: Exception) -> StreamsError:
    """What a commit fails with. Errors about a record say themselves where it got stuck; here it was on its way out of a cache."""
    if isinstance(error, StreamsError) and not isinstance(error, RecordError):
        return error
    failure = StateStoreError(f"the cache of store {name} could not be flushed: {error}")
    failure.__cause__ = error
    return failure
