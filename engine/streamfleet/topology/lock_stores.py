"""What of a store goes into the lock: all that decides whether the rows and the changelog of one version can be read by another."""

from __future__ import annotations

from typing import Any

from streamfleet.serdes.identity import identity
from streamfleet.state.api import StateStore, StoreBuilder
from streamfleet.state.builders import KeyValueStoreBuilder, SessionStoreBuilder, WindowStoreBuilder
from streamfleet.state.change_buffer import ChangeBufferBuilder
from streamfleet.state.record_buffer import RecordBufferBuilder
from streamfleet.state.versioned_store import VersionedStoreBuilder
from streamfleet.topology.nodes import GlobalStoreEntry


def store_entry(builder: StoreBuilder[StateStore], source_topic: str | None) -> dict[str, Any]:
    return _rows(builder) | {
        "retention_ms": builder.retention_ms,
        "logged": builder.logging_enabled,
        "log_config": dict(builder.log_config),
        "changelog": source_topic or (f"{builder.name}-changelog" if builder.logging_enabled else None),
        "source_topic": source_topic,
    }


def global_store_entry(entry: GlobalStoreEntry) -> dict[str, Any]:
    return _rows(entry.builder) | {"topic": entry.source.topics[0]}


def _rows(builder: StoreBuilder[StateStore]) -> dict[str, Any]:
    """Builders of users may lack what ours have; theirs are known by their class."""
    rows = {
        "engine": getattr(builder, "kind", None),
        "key_serde": identity(getattr(builder, "key_serde", None)),
        "value_serde": identity(getattr(builder, "value_serde", None)),
        "windowed": builder.is_windowed,
    }
    if isinstance(builder, KeyValueStoreBuilder):
        kind = "key_value" if builder.max_entries is None else "lru"
        return rows | {"kind": _timestamped(builder, kind), "max_entries": builder.max_entries}
    if isinstance(builder, WindowStoreBuilder):
        layout = {"window_size_ms": builder.window_size, "retain_duplicates": builder.retain_duplicates}
        return rows | layout | {"kind": _timestamped(builder, "window"), "time_first": builder.time_first}
    if isinstance(builder, SessionStoreBuilder):
        return rows | {"kind": "session", "time_first": builder.time_first}
    if isinstance(builder, ChangeBufferBuilder):
        return rows | {"kind": "change_buffer"}
    if isinstance(builder, RecordBufferBuilder):
        return rows | {"kind": "record_buffer"}
    if isinstance(builder, VersionedStoreBuilder):
        layout = {"history_ms": builder.history_retention_ms, "segment_interval_ms": builder.segment_interval_ms}
        return rows | layout | {"kind": "versioned_key_value"}
    return rows | {"kind": f"{type(builder).__module__}.{type(builder).__qualname__}"}


def _timestamped(builder: KeyValueStoreBuilder[Any, Any] | WindowStoreBuilder[Any, Any], kind: str) -> str:
    """Whether there is a timestamp in front of a row's value."""
    is_in_rows = builder.is_timestamped and not builder.forgets_timestamps
    return f"timestamped_{kind}" if is_in_rows else kind
