"""A task's state without a task: a StoreContext that records what stores log and drop, over real engines."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from streamfleet import serdes
from streamfleet.ids import TaskId
from streamfleet.ports import StoreEngine
from streamfleet.records import Headers, RawRecord, RecordContext
from streamfleet.state.memory_engine import MemoryEngine
from streamfleet.state.rocksdb_engine import RocksDBEngine
from streamfleet.state.store_caches import StoreCaches
from streamfleet.state.task_state import TaskState


@dataclass(frozen=True)
class Entry:
    builder: Any
    changelog: str | None
    source_is_changelog: bool = False

    @property
    def name(self) -> str:
        return self.builder.name


@dataclass
class FakeContext:
    directory: Path
    cache_max_bytes: int = 10_000_000
    object_max_bytes: int = 100_000
    deduplicate_changelog: bool = False
    default_key_serde: Any = field(default_factory=serdes.string)
    default_value_serde: Any = field(default_factory=serdes.string)
    application_id: str = "app"
    task_id: TaskId = TaskId(0, 0)
    state_id: str = "content_0"
    record_context: RecordContext | None = None
    logged: list[RawRecord] = field(default_factory=list)
    dropped: list[tuple[str, str]] = field(default_factory=list)
    engines: dict[str, StoreEngine] = field(default_factory=dict)

    def __post_init__(self):
        self.caches = StoreCaches(self.cache_max_bytes, self.object_max_bytes)

    def engine(self, kind):
        if kind not in self.engines:
            self.engines[kind] = MemoryEngine() if kind == "in_memory" else RocksDBEngine(self.directory / "rocksdb")
        return self.engines[kind]

    def changelog_topic(self, store_name):
        return f"app-{store_name}-changelog"

    def log_change(self, store_name, key, value, timestamp, headers: Headers):
        topic = f"app-{store_name}-changelog"
        self.logged.append(RawRecord(topic, 0, len(self.logged), timestamp, key, value, headers))

    def drop(self, store_name, reason):
        self.dropped.append((store_name, reason))

    def at(self, timestamp, *, topic="in", headers=(), raw=None):
        """As if a record with that timestamp were under way."""
        self.record_context = RecordContext(topic, 0, 0, timestamp, raw, raw, headers)

    def close_engines(self):
        for engine in self.engines.values():
            engine.close()
        self.engines.clear()


class Task:
    """The state of one task over a directory of its own."""

    def __init__(self, directory, builders, **options):
        self.builders = builders
        self.context = FakeContext(directory, **options)
        self.context.at(0)
        self.open()

    def open(self):
        entries = [self.entry(builder) for builder in self.builders]
        self.changelogs = [entry.changelog for entry in entries if entry.changelog is not None]
        self.state = TaskState(self.context, entries)

    @staticmethod
    def entry(builder):
        if isinstance(builder, Entry):
            return builder
        return Entry(builder, f"app-{builder.name}-changelog" if builder.logging_enabled else None)

    @property
    def store(self):
        """The only store, or the first."""
        return next(iter(self.state.stores.values()))

    def flush(self):
        self.state.flush_caches()
        self.state.log_changes()

    def commit(self, **offsets):
        """With offsets by store, as given; else with offset 0 for every changelog, since rows never come without one."""
        self.flush()
        chosen = {f"app-{name}-changelog": offset for name, offset in offsets.items()}
        self.state.commit(chosen or dict.fromkeys(self.changelogs, 0))

    def reopen(self):
        """As after an ordinary restart of the process: only what is on disk is left."""
        self.state.close()
        self.context.close_engines()
        self.open()

    def restored(self, directory):
        """Another task whose stores were restored from what this one has logged."""
        other = Task(directory, self.builders)
        for name, store in other.state.stores.items():
            store.restore([record for record in self.context.logged if record.topic == f"app-{name}-changelog"])
        return other

    def logged(self):
        """(key, value, timestamp) of the changelog records so far; then none."""
        records = [(r.key, r.value, r.timestamp) for r in self.context.logged]
        self.context.logged.clear()
        return records

    def close(self):
        self.state.close()
        self.context.close_engines()


@pytest.fixture(scope="session")
def new_task(tmp_path_factory):
    """new_task(*builders, **options of the context) -> Task. Session scope: properties make many in one test."""
    tasks = []

    def make(*builders, **options):
        task = Task(tmp_path_factory.mktemp("task"), builders, **options)
        tasks.append(task)
        return task

    yield make
    for task in tasks:
        task.close()


@pytest.fixture(scope="session")
def restore_task(tmp_path_factory):
    """restore_task(task) -> a task with the same stores, restored from its changelogs."""
    tasks = []

    def make(task):
        other = task.restored(tmp_path_factory.mktemp("restored"))
        tasks.append(other)
        return other

    yield make
    for task in tasks:
        task.close()


@pytest.fixture(scope="session")
def stored_entry():
    return Entry


@pytest.fixture(params=["dirty", "flushed", "committed", "reopened"])
def settled(request, restore_task):
    """settled(task) -> its first store, at another stage of the life of what was written."""

    def settle(task):
        if request.param == "dirty":
            return task.store
        if request.param == "flushed":
            task.flush()
            return task.store
        task.commit()
        if request.param == "reopened":
            if not task.store.is_persistent:
                return restore_task(task).store
            task.reopen()
        return task.store

    return settle
