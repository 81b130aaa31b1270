"""What restoring means to a task's stores: which changelogs they have, how far each is, and how records get into them.

The same for a StreamTask before it runs and for a StandbyTask all its life. Who reads the changelogs is in changelog/.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from streamfleet.ids import TopicPartition
from streamfleet.records import RawRecord
from streamfleet.state.task_state import TaskState
from streamfleet.topology.nodes import StoreEntry


def changelog_stores(entries: Sequence[StoreEntry]) -> dict[str, str]:
    """Changelog topic -> name of the store that it restores."""
    return {entry.changelog: entry.name for entry in entries if entry.changelog is not None}


def source_changelogs(entries: Sequence[StoreEntry]) -> frozenset[str]:
    """Changelogs that are input topics: they may be restored only as far as they were processed."""
    return frozenset(entry.changelog for entry in entries if entry.changelog and entry.source_is_changelog)


def restore_positions(
    entries: Sequence[StoreEntry], state: TaskState, partition: int
) -> dict[TopicPartition, int | None]:
    """Where to go on reading each changelog; None: at its beginning, because nothing of it is here."""
    reached = state.changelog_offsets()
    return {
        TopicPartition(topic, partition): reached[topic] + 1 if topic in reached else None
        for topic in changelog_stores(entries)
    }


def offset_sum_on_disk(entries: Sequence[StoreEntry], state: TaskState) -> int:
    """How much of its changelogs a task has when it is closed: what is in memory is gone then."""
    reached = state.changelog_offsets()
    on_disk = {entry.changelog for entry in entries if getattr(entry.builder, "kind", None) == "rocksdb"}
    return sum(offset + 1 for topic, offset in reached.items() if topic in on_disk)


def apply_changelog(
    entries: Sequence[StoreEntry], state: TaskState, topic: str, records: Iterable[RawRecord], last_offset: int
) -> None:
    """Apply changelog records up to `last_offset`, and remember that: rows and offset are written together."""
    batch = list(records)
    for entry in entries:
        if entry.changelog == topic:
            state.stores[entry.name].restore(batch)
    state.commit({topic: last_offset})
    if batch and batch[-1].timestamp >= 0:
        state.committed.replayed_to_ms[topic] = batch[-1].timestamp
