"""The engines below the stores of one task: one database on disk and one in memory, opened when a store first asks.

Given to a task by its owner, who knows the directory. Which store lives in which engine is said by the stores'
builders.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from streamfleet.ports import StoreEngine
from streamfleet.state.api import StoreEngineKind
from streamfleet.state.memory_engine import MemoryEngine
from streamfleet.state.rocksdb_engine import RocksDBEngine, RocksDBOptions


class StoreEngines:
    """`directory` is the task's own; it is created with the database. `options` are the same for all tasks of a process."""

    def __init__(
        self, directory: Path, options: RocksDBOptions | None = None, on_close: Callable[[], None] | None = None
    ) -> None:
        """`on_close` is called when nothing is open any more."""
        self._on_close = on_close
        self._directory = directory
        self._options = options
        self._open: dict[StoreEngineKind, StoreEngine] = {}

    def engine(self, kind: StoreEngineKind) -> StoreEngine:
        if kind not in self._open:
            self._open[kind] = MemoryEngine() if kind == "in_memory" else RocksDBEngine(self._directory, self._options)
        return self._open[kind]

    def close(self) -> None:
        try:
            for engine in self._open.values():
                engine.close()
        finally:
            self._open.clear()
            if self._on_close is not None:
                self._on_close()
