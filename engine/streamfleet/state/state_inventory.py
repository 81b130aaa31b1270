"""StateInventory: how much of each task's changelogs is in this process's state directory. One per process, read by its members'
reports to the group, which gives tasks to who has most of their state.

What is closed is read from its database once, at the start, and noted again whenever a task is closed; opening databases for every
rebalance would cost more than it tells. What is open is known by its owner.
"""

from __future__ import annotations

import threading
from collections.abc import Collection

import structlog

from streamfleet.errors import StateStoreError
from streamfleet.state.engine_rows import EngineRows
from streamfleet.state.rocksdb_engine import RocksDBEngine
from streamfleet.state.state_directory import StateDirectory

log = structlog.get_logger(__name__)

StateKey = tuple[str, int]
"""Content id and partition of a task."""


class StateInventory:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._offset_sums: dict[StateKey, int] = {}

    def note(self, key: StateKey, offset_sum: int) -> None:
        with self._lock:
            self._offset_sums[key] = offset_sum

    def forget(self, key: StateKey) -> None:
        """Its state was deleted."""
        with self._lock:
            self._offset_sums.pop(key, None)

    def offset_sums(self) -> dict[StateKey, int]:
        with self._lock:
            return dict(self._offset_sums)


def take_inventory(directory: StateDirectory, application_id: str, content_ids: Collection[str]) -> StateInventory:
    """Look into the databases of all tasks that this topology has. One that cannot be read counts as if it were not there."""
    inventory = StateInventory()
    for content_id, partition in directory.tasks():
        if content_id not in content_ids:
            continue
        try:
            offset_sum = _offset_sum(directory, application_id, content_id, partition)
        except (StateStoreError, OSError) as error:
            log.warning("local state of a task cannot be read", task=f"{content_id}_{partition}", error=str(error))
        else:
            inventory.note((content_id, partition), offset_sum)
    return inventory


def _offset_sum(directory: StateDirectory, application_id: str, content_id: str, partition: int) -> int:
    path = directory.task_directory(content_id, partition)
    if not (path / "CURRENT").exists():  # of a task that keeps nothing on disk
        return 0
    engine = RocksDBEngine(path)
    try:
        rows = EngineRows(engine, application_id, path.name)
        return sum(offset + 1 for _, offset in rows.offsets())
    finally:
        engine.close()
