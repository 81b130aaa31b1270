"""What can be asked of a store, as values. store_reader.py answers them; names and meaning are those of Kafka Streams.

Results of ranges are in the order of the serialized keys, window by window or segment by segment where the store is: within
one partition. Between partitions there is no order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from streamfleet.durations import LONG_MAX
from streamfleet.errors import OptionError
from streamfleet.records import ValueAndTimestamp, VersionedRecord, Windowed

K = TypeVar("K")
V = TypeVar("V")
R_co = TypeVar("R_co", covariant=True)


class Query(Generic[R_co]):
    """A question whose answer is an R."""


@dataclass(frozen=True)
class KeyQuery(Query[V | None], Generic[K, V]):
    """The value of a key, without its timestamp; None if there is none. Key-value stores."""

    key: K


@dataclass(frozen=True)
class TimestampedKeyQuery(Query[ValueAndTimestamp[V] | None], Generic[K, V]):
    """The value of a key with the timestamp of its last update. Timestamped key-value stores: those of tables."""

    key: K


@dataclass(frozen=True)
class RangeQuery(Query[list[tuple[K, V]]], Generic[K, V]):
    """Keys from `lower` to `upper`, both included, None: open. Key-value stores; values without timestamp."""

    lower: K | None = None
    upper: K | None = None
    descending: bool = False


@dataclass(frozen=True)
class TimestampedRangeQuery(Query[list[tuple[K, ValueAndTimestamp[V]]]], Generic[K, V]):
    """As RangeQuery, with timestamps. Timestamped key-value stores."""

    lower: K | None = None
    upper: K | None = None
    descending: bool = False


@dataclass(frozen=True)
class WindowKeyQuery(Query[list[tuple[int, V]]], Generic[K, V]):
    """The windows of a key that start in [time_from, time_to], as (start, value). Window stores; values as the store holds them."""

    key: K
    time_from: int = 0
    time_to: int = LONG_MAX


@dataclass(frozen=True)
class WindowRangeQuery(Query[list[tuple[Windowed[K], V]]], Generic[K, V]):
    """With a key: its sessions; session stores. With times: the windows of all keys that start in [time_from, time_to];
    window stores.
    """

    key: K | None = None
    time_from: int | None = None
    time_to: int | None = None

    def __post_init__(self) -> None:
        if (self.key is None) is (self.time_from is None and self.time_to is None):
            raise OptionError(
                "a WindowRangeQuery has either a key or times", hint="a key for session stores, times for window stores"
            )


@dataclass(frozen=True)
class VersionedKeyQuery(Query[VersionedRecord[V] | None], Generic[K, V]):
    """The version of a key that was valid at `as_of`, None: the latest. Versioned stores."""

    key: K
    as_of: int | None = None


@dataclass(frozen=True)
class MultiVersionedKeyQuery(Query[list[VersionedRecord[V]]], Generic[K, V]):
    """The versions of a key that were valid at some time in [time_from, time_to], the earliest first. Versioned stores."""

    key: K
    time_from: int = 0
    time_to: int = LONG_MAX
    descending: bool = False


AnyQuery = Query[Any]
