"""The ledger app: all shapes of processing in one topology, each with an output of its own.

    ledger-input ─┬─> echo                          every record as it came
                  ├─> min, max, sum, count, avg     per key, every intermediate result
                  ├─> window-min                    per key and window, every intermediate result
                  ├─> window-closed                 per key and window, once, when the window is closed
                  ├─> joined                        with the key's row of the table ledger-limits
                  ├─> paired                        some of the integers with others of the key that are near in time, or with none
                  ├─> window-final                  the sum per key and window, suppressed until the window is closed
                  ├─> count ──re-keyed by count──> tagg      how many keys have been counted that far
                  └─> count ──to who points to the key──> owned      for every row of the table ledger-accounts, by foreign key

Run by worker.py. Caching is off, so that nothing is held back: a result that is missing was lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import msgspec
from tests.ledger.workload import GRACE_MS, PAIR_REACH_MS, WINDOW_MS, is_left, is_right

import streamfleet as sf
from streamfleet.partitioner import partition_for

INPUT = "ledger-input"
LIMITS = "ledger-limits"
ACCOUNTS = "ledger-accounts"
SUB_TOPOLOGIES = 3
"""Input; tags; accounts."""
RECORD_ID = "record-id"
SEQUENCE = "sequence"
SOURCE_OFFSET = "source-offset"
"""Of the record of one of the app's own topics that a result of `tagg` or `owned` follows from."""
NEVER_COUNTED = "0"
"""Before its first record a key has the count 0, which it leaves without ever having entered it: a tag without a count."""
RETENTION = timedelta(days=1)

TEXT = sf.serdes.string()
LONG = sf.serdes.long()
WINDOWED = sf.serdes.windowed(TEXT, size=timedelta(milliseconds=WINDOW_MS))


class Total(msgspec.Struct, frozen=True):
    """What an average is made of."""

    total: int = 0
    count: int = 0


class Pair(msgspec.Struct, frozen=True):
    """What the stream-stream join makes of two integers of a key; None: there is no other."""

    left: int | None
    right: int | None


TOTAL = sf.serdes.json(Total)
PAIR = sf.serdes.json(Pair)
PAIR_WINDOWS = sf.JoinWindows(before=PAIR_REACH_MS, after=PAIR_REACH_MS, grace=GRACE_MS)


@dataclass(frozen=True)
class LedgerStore:
    """A store of the app, with what the checker must know of its layout."""

    name: str
    layout: str = "key_value"
    """key_value, window (rows by key), window_by_time, or memory: nothing of it is on disk."""
    is_timestamped: bool = True
    """Whether a row begins with the timestamp of its record."""
    retention_ms: int | None = None
    """After that time rows of windows may be gone; None: they stay."""


STORES = (
    LedgerStore("min"),
    LedgerStore("max"),
    LedgerStore("sum"),
    LedgerStore("count"),
    LedgerStore("avg"),
    LedgerStore("window-min", "window"),
    LedgerStore("window-closed", "window_by_time"),
    LedgerStore("limits"),
    LedgerStore("tagg"),
    LedgerStore("paired-outer-this-join-store", "window", False, PAIR_WINDOWS.retention_ms),
    LedgerStore("paired-outer-other-join-store", "window", False, PAIR_WINDOWS.retention_ms),
    LedgerStore("paired-outer-shared-join-store", is_timestamped=False),
    LedgerStore("window-sum", "window"),
    LedgerStore("final-store", "memory"),
    LedgerStore("accounts"),
    LedgerStore("by-account-subscription-store"),
)
PLAIN_OUTPUTS = ("echo", "min", "max", "sum", "count", "avg", "window-min", "window-closed", "joined")
OUTPUTS = (*PLAIN_OUTPUTS, "window-final", "paired", "tagg", "owned")


def output_topic(name: str) -> str:
    return f"ledger-{name}"


def topology() -> sf.Topology:
    builder = sf.StreamsBuilder()
    limits = builder.table(LIMITS, key_serde=TEXT, value_serde=LONG, store="limits")
    numbers = builder.stream(INPUT, key_serde=TEXT, value_serde=LONG)
    numbers.to(output_topic("echo"), key_serde=TEXT, value_serde=LONG)
    numbers.join(limits, lambda value, limit: value + limit, name="with-limit").to(
        output_topic("joined"), key_serde=TEXT, value_serde=LONG
    )
    grouped = numbers.group_by_key(key_serde=TEXT, value_serde=LONG)
    counts = _plain_aggregates(grouped)
    _windowed_aggregates(grouped)
    _pairs(numbers)
    _counts_by_account(builder.table(ACCOUNTS, key_serde=TEXT, value_serde=TEXT, store="accounts"), counts)
    return builder.build()


def _plain_aggregates(grouped: sf.KGroupedStream[str, int]) -> sf.KTable[str, int]:
    _to_topic(grouped.reduce(min, materialized=_kept("min")), "min")
    _to_topic(grouped.reduce(max, materialized=_kept("max")), "max")
    _to_topic(grouped.reduce(lambda one, other: one + other, materialized=_kept("sum")), "sum")
    counts = grouped.count(materialized=_kept("count"))
    _to_topic(counts, "count")
    averages = grouped.aggregate(
        Total,
        lambda key, value, total: Total(total.total + value, total.count + 1),
        materialized=sf.Materialized("avg", key_serde=TEXT, value_serde=TOTAL),
    )
    averages.to_stream().to(output_topic("avg"), key_serde=TEXT, value_serde=TOTAL)
    tagged = counts.group_by(
        lambda key, count: (str(count), count), name="by-count", key_serde=TEXT, value_serde=LONG
    ).count(materialized=_kept("tagg"))
    tagged.to_stream().process_values(StampOffset, name="stamped").to(
        output_topic("tagg"), key_serde=TEXT, value_serde=LONG
    )
    return counts


class StampOffset(sf.FixedKeyProcessor[str, int, int]):
    """Says in a header from which record of its partition a result follows: one of the app's own topics has no other ids."""

    def process(self, record: sf.FixedKeyRecord[str, int]) -> None:
        metadata = self.context.record_metadata()
        assert metadata is not None
        self.context.forward(record.with_headers((*record.headers, (SOURCE_OFFSET, str(metadata.offset).encode()))))


def _pairs(numbers: sf.KStream[str, int]) -> None:
    left = numbers.filter(lambda _, value: is_left(value), name="left")
    right = numbers.filter(lambda _, value: is_right(value), name="right")
    pairs = left.outer_join(
        right,
        Pair,
        window=PAIR_WINDOWS,
        name="paired",
        store_name="paired",
        key_serde=TEXT,
        value_serde=LONG,
        other_value_serde=LONG,
    )
    pairs.to(output_topic("paired"), key_serde=TEXT, value_serde=PAIR)


def _counts_by_account(accounts: sf.KTable[str, str], counts: sf.KTable[str, int]) -> None:
    """Accounts do not change while there is input, so that no answer is ever out of date: each count reaches each account."""
    owned = accounts.join(
        counts, lambda _key, count: count, foreign_key=lambda account_of: account_of, name="by-account"
    )
    owned.to_stream().process_values(StampOffset, name="owned-stamped").to(
        output_topic("owned"), key_serde=TEXT, value_serde=LONG
    )


def _windowed_aggregates(grouped: sf.KGroupedStream[str, int]) -> None:
    windows = sf.TimeWindows(size=timedelta(milliseconds=WINDOW_MS), grace=timedelta(milliseconds=GRACE_MS))
    every = grouped.windowed_by(windows).reduce(min, materialized=_kept_windows("window-min"))
    every.to_stream().to(output_topic("window-min"), key_serde=WINDOWED, value_serde=LONG, partitioner=_with_key)
    once = grouped.windowed_by(windows).emit_strategy(sf.EmitStrategy.ON_WINDOW_CLOSE)
    closed = once.reduce(min, materialized=_kept_windows("window-closed"))
    closed.to_stream().to(output_topic("window-closed"), key_serde=WINDOWED, value_serde=LONG, partitioner=_with_key)
    sums = grouped.windowed_by(windows).reduce(lambda one, other: one + other, materialized=_kept_windows("window-sum"))
    final = sums.suppress(sf.Suppressed.until_window_closes(sf.BufferConfig.unbounded(), name="final"))
    final.to_stream().to(output_topic("window-final"), key_serde=WINDOWED, value_serde=LONG, partitioner=_with_key)


def _with_key(topic: str, windowed: sf.Windowed[str], value: int, partitions: int) -> list[int]:
    """All windows of a key in one partition, so that they have an order."""
    return [partition_for(windowed.key.encode(), partitions)]


def _to_topic(table: sf.KTable[str, int], name: str) -> None:
    table.to_stream().to(output_topic(name), key_serde=TEXT, value_serde=LONG)


def _kept(store: str) -> sf.Materialized:
    return sf.Materialized(store, key_serde=TEXT, value_serde=LONG)


def _kept_windows(store: str) -> sf.Materialized:
    # Longer than any run: rows never expire, so a store can be compared with all of its changelog.
    return sf.Materialized(store, key_serde=TEXT, value_serde=LONG, retention=RETENTION)
