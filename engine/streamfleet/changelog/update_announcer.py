"""UpdateAnnouncer: tells the user's listeners what the StateUpdater does, in the listeners' terms: per changelog and store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamfleet.changelog.listeners import SuspendReason, UpdateListeners
from streamfleet.changelog.progress import Update
from streamfleet.errors import StreamsError
from streamfleet.ids import TopicPartition


class UpdateAnnouncer:
    def __init__(self, listeners: UpdateListeners) -> None:
        self._listeners = listeners

    def start(self, update: Update) -> None:
        for partition, at in update.positions.items():
            store = _store(update, partition)
            if update.is_active:
                _tell(self._listeners.restore.on_restore_start, partition, store, at, update.ends[partition])
            else:
                _tell(self._listeners.standby.on_update_start, partition, store, at)

    def batch(self, update: Update, partition: TopicPartition, last_offset: int, count: int) -> None:
        update.totals[partition] = update.totals.get(partition, 0) + count
        store = _store(update, partition)
        if update.is_active:
            _tell(self._listeners.restore.on_batch_restored, partition, store, last_offset, count)
        else:
            task_id, end = update.task.task_id, update.known_ends.get(partition)
            _tell(self._listeners.standby.on_batch_loaded, partition, store, task_id, last_offset, count, end)

    def end(self, update: Update) -> None:
        """An active task is complete."""
        for partition in update.positions:
            _tell(
                self._listeners.restore.on_restore_end,
                partition,
                _store(update, partition),
                update.totals.get(partition, 0),
            )

    def suspended(self, update: Update, reason: SuspendReason) -> None:
        for partition, at in update.positions.items():
            store = _store(update, partition)
            if update.is_active:
                _tell(self._listeners.restore.on_restore_suspended, partition, store, update.totals.get(partition, 0))
            else:
                end = update.known_ends.get(partition)
                _tell(self._listeners.standby.on_update_suspended, partition, store, at, end, reason)


def _store(update: Update, partition: TopicPartition) -> str:
    return update.task.changelog_stores[partition.topic]


def _tell(listener: Callable[..., Any], *what: Any) -> None:
    try:
        listener(*what)
    except StreamsError:
        raise
    except Exception as error:
        raise StreamsError(f"the listener's {listener.__name__} raised: {error!r}") from error
