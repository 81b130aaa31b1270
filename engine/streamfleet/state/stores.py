"""Stores: the factory of store builders that users call, named as in Kafka Streams. The builders are in builders.py."""

from __future__ import annotations

from typing import TypeVar

from streamfleet.durations import Duration, duration_ms
from streamfleet.records import ValueAndTimestamp
from streamfleet.serdes.api import Serde
from streamfleet.state.api import StoreEngineKind
from streamfleet.state.builders import KeyValueStoreBuilder, Logging, SessionStoreBuilder, WindowStoreBuilder
from streamfleet.state.versioned_store import VersionedStoreBuilder, versioned_builder

__all__ = ["KeyValueStoreBuilder", "SessionStoreBuilder", "Stores", "WindowStoreBuilder"]

K = TypeVar("K")
V = TypeVar("V")


class Stores:
    """Makes store builders, as Kafka Streams' class of the same name. Durations are timedeltas or milliseconds."""

    @staticmethod
    def key_value(
        name: str,
        *,
        kind: StoreEngineKind = "rocksdb",
        key_serde: Serde[K] | None = None,
        value_serde: Serde[V] | None = None,
        caching: bool = False,
        logging: Logging = True,
    ) -> KeyValueStoreBuilder[K, V]:
        """Key to value."""
        return KeyValueStoreBuilder(
            name=name, kind=kind, key_serde=key_serde, value_serde=value_serde, caching=caching, logging=logging
        )

    @staticmethod
    def timestamped_key_value(
        name: str,
        *,
        kind: StoreEngineKind = "rocksdb",
        key_serde: Serde[K] | None = None,
        value_serde: Serde[V] | None = None,
        caching: bool = False,
        logging: Logging = True,
    ) -> KeyValueStoreBuilder[K, ValueAndTimestamp[V]]:
        """Key to value with the timestamp of its last update: what tables are kept in."""
        return KeyValueStoreBuilder(
            name=name,
            kind=kind,
            key_serde=key_serde,
            value_serde=value_serde,
            caching=caching,
            logging=logging,
            is_timestamped=True,
        )

    @staticmethod
    def lru(
        name: str,
        max_entries: int,
        *,
        key_serde: Serde[K] | None = None,
        value_serde: Serde[V] | None = None,
        caching: bool = False,
        logging: Logging = True,
    ) -> KeyValueStoreBuilder[K, V]:
        """Key to value in memory, for the `max_entries` keys that were used last."""
        return KeyValueStoreBuilder(
            name=name,
            kind="in_memory",
            key_serde=key_serde,
            value_serde=value_serde,
            caching=caching,
            logging=logging,
            max_entries=max_entries,
        )

    @staticmethod
    def window(
        name: str,
        retention: Duration,
        window_size: Duration,
        *,
        retain_duplicates: bool = False,
        kind: StoreEngineKind = "rocksdb",
        key_serde: Serde[K] | None = None,
        value_serde: Serde[V] | None = None,
        caching: bool = False,
        logging: Logging = True,
    ) -> WindowStoreBuilder[K, V]:
        """(key, window start) to value, or to all values that were put there if `retain_duplicates`."""
        return WindowStoreBuilder(
            name=name,
            retention=duration_ms(retention, f"retention of store {name}"),
            window_size=duration_ms(window_size, f"window_size of store {name}"),
            retain_duplicates=retain_duplicates,
            kind=kind,
            key_serde=key_serde,
            value_serde=value_serde,
            caching=caching,
            logging=logging,
        )

    @staticmethod
    def timestamped_window(
        name: str,
        retention: Duration,
        window_size: Duration,
        *,
        retain_duplicates: bool = False,
        kind: StoreEngineKind = "rocksdb",
        key_serde: Serde[K] | None = None,
        value_serde: Serde[V] | None = None,
        caching: bool = False,
        logging: Logging = True,
    ) -> WindowStoreBuilder[K, ValueAndTimestamp[V]]:
        """A window store whose values carry the timestamp of their last update."""
        plain = Stores.window(
            name,
            retention,
            window_size,
            retain_duplicates=retain_duplicates,
            kind=kind,
            key_serde=key_serde,
            value_serde=value_serde,
            caching=caching,
            logging=logging,
        )
        return plain.timestamped()

    @staticmethod
    def versioned_key_value(
        name: str,
        history_retention: Duration,
        *,
        segment_interval: Duration | None = None,
        key_serde: Serde[K] | None = None,
        value_serde: Serde[V] | None = None,
        logging: Logging = True,
    ) -> VersionedStoreBuilder:
        """Key to its values over time: a lookup can ask what was valid then. On disk, without cache."""
        return versioned_builder(
            name, history_retention, segment_interval, key_serde=key_serde, value_serde=value_serde, logging=logging
        )

    @staticmethod
    def session(
        name: str,
        retention: Duration,
        *,
        kind: StoreEngineKind = "rocksdb",
        key_serde: Serde[K] | None = None,
        value_serde: Serde[V] | None = None,
        caching: bool = False,
        logging: Logging = True,
    ) -> SessionStoreBuilder[K, V]:
        """(key, session) to value."""
        return SessionStoreBuilder(
            name=name,
            retention=duration_ms(retention, f"retention of store {name}"),
            kind=kind,
            key_serde=key_serde,
            value_serde=value_serde,
            caching=caching,
            logging=logging,
        )
