"""Who is told how stores come back: StateRestoreListener for tasks that are to run, StandbyUpdateListener for copies.

Implemented by users, set on KafkaStreams, called by the StateUpdater in its own thread, so that what they do holds up restoring and
nothing else. One that raises ends the StreamThread, as any other user code does.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from streamfleet.ids import TaskId, TopicPartition


class SuspendReason(enum.Enum):
    """Why a copy is no longer updated."""

    MIGRATED = "migrated"
    """It is closed: it is not needed here any more, or will be elsewhere."""
    PROMOTED = "promoted"
    """It becomes the active task."""


class StateRestoreListener:
    """Per changelog partition: one start, any number of batches, then either the end or that it was suspended."""

    def on_restore_start(
        self, partition: TopicPartition, store: str, starting_offset: int, ending_offset: int
    ) -> None: ...

    def on_batch_restored(
        self, partition: TopicPartition, store: str, batch_end_offset: int, restored_records: int
    ) -> None: ...

    def on_restore_end(self, partition: TopicPartition, store: str, total_restored: int) -> None: ...

    def on_restore_suspended(self, partition: TopicPartition, store: str, total_restored: int) -> None:
        """The task goes elsewhere, or stops, before its store was complete."""


class StandbyUpdateListener:
    """Per changelog partition: one start, any number of batches, then that it was suspended."""

    def on_update_start(self, partition: TopicPartition, store: str, starting_offset: int) -> None: ...

    def on_batch_loaded(
        self,
        partition: TopicPartition,
        store: str,
        task_id: TaskId,
        batch_end_offset: int,
        batch_size: int,
        current_end_offset: int | None,
    ) -> None:
        """`current_end_offset` is None as long as nobody has said where the changelog ends."""

    def on_update_suspended(
        self,
        partition: TopicPartition,
        store: str,
        store_offset: int,
        current_end_offset: int | None,
        reason: SuspendReason,
    ) -> None: ...


@dataclass
class UpdateListeners:
    """Those of an app. Without any, nobody is told."""

    restore: StateRestoreListener = field(default_factory=StateRestoreListener)
    standby: StandbyUpdateListener = field(default_factory=StandbyUpdateListener)
