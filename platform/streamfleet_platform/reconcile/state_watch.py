"""How many bytes workers' stores take on disk, walked in the background now and then. Used by door_observer.py.

The stores of one sub-topology share a database per partition (the engine's layout), so a store's bytes are those of its databases,
in equal shares where there are several: an estimate, as what a restore costs is.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from streamfleet_platform.reconcile.observing import AppToSee
from streamfleet_platform.runtime.api import Runtime
from streamfleet_platform.topologies.lock import TopologyLock

EVERY_SECONDS = 15.0

SlotSizes = Mapping[int, Mapping[str, int]]
"""By slot and task."""


class StateWatch:
    """Close it. Used by one thread."""

    def __init__(self, runtime: Runtime, every_seconds: float = EVERY_SECONDS) -> None:
        self._runtime = runtime
        self._every_seconds = every_seconds
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="state-sizes")
        self._walk: Future[dict[str, SlotSizes]] | None = None
        self._next = 0.0
        self._sizes: dict[str, SlotSizes] = {}

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def sizes(self, apps: Sequence[AppToSee]) -> Mapping[str, SlotSizes]:
        if self._walk is not None and self._walk.done():
            if self._walk.exception() is None:
                self._sizes = self._walk.result()
            self._walk = None
        if self._walk is None and time.monotonic() >= self._next:
            slots = [(app.app.name, worker.slot) for app in apps for worker in app.workers]
            self._next = time.monotonic() + self._every_seconds
            self._walk = self._pool.submit(self._walked, slots)
        return self._sizes

    def _walked(self, slots: Sequence[tuple[str, int]]) -> dict[str, SlotSizes]:
        found: dict[str, dict[int, Mapping[str, int]]] = {}
        for app, slot in slots:
            found.setdefault(app, {})[slot] = self._runtime.task_bytes(app, slot)
        return dict(found)


def store_sizes(lock: TopologyLock, sizes: SlotSizes) -> tuple[dict[str, int], dict[str, tuple[int, int]]]:
    """Bytes of each store over all slots; and the slot that has most of it, with the bytes of its databases there."""
    total: dict[str, int] = {}
    largest: dict[str, tuple[int, int]] = {}
    for part in lock.sub_topologies:
        stores = sorted(part["stores"])
        prefix = f"{part['content_id']}_"
        for slot, tasks in sorted(sizes.items()):
            held = sum(size for task, size in tasks.items() if task.startswith(prefix))
            for store in stores:
                total[store] = total.get(store, 0) + held // len(stores)
                if held > largest.get(store, (slot, 0))[1]:
                    largest[store] = (slot, held)
    return total, largest
