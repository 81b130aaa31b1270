"""The ledger app: all shapes of processing in one topology, each with an output of its own.

    ledger-input ─┬─> echo                          every record as it came
                  ├─> min, max, sum, count, avg     per key, every intermediate result
                  ├─> window-min                    per key and window, every intermediate result
                  ├─> window-closed                 per key and window, once, when the window is closed
                  ├─> joined                        with the key's row of the table ledger-limits
                  └─> count ──re-keyed by count──> tagg      how many keys have been counted that far

Run by worker.py. Caching is off, so that nothing is held back: a result that is missing was lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import msgspec
from tests.ledger.workload import GRACE_MS, WINDOW_MS

import streamfleet as sf
from streamfleet.partitioner import partition_for

INPUT = "ledger-input"
LIMITS = "ledger-limits"
RECORD_ID = "record-id"
SEQUENCE = "sequence"
SOURCE_OFFSET = "source-offset"
"""Of the record of the repartition topic that a result of `tagg` follows from."""
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


TOTAL = sf.serdes.json(Total)


@dataclass(frozen=True)
class LedgerStore:
    """A store of the app, with what the checker must know of its layout."""

    name: str
    layout: str = "key_value"
    """key_value, window (rows by key) or window_by_time."""


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
)
OUTPUTS = ("echo", "min", "max", "sum", "count", "avg", "window-min", "window-closed", "joined", "tagg")


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
    _plain_aggregates(grouped)
    _windowed_aggregates(grouped)
    return builder.build()


def _plain_aggregates(grouped: sf.KGroupedStream[str, int]) -> None:
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


class StampOffset(sf.FixedKeyProcessor[str, int, int]):
    """Says in a header from which record of its partition a result follows: one of the app's own topics has no other ids."""

    def process(self, record: sf.FixedKeyRecord[str, int]) -> None:
        metadata = self.context.record_metadata()
        assert metadata is not None
        self.context.forward(record.with_headers((*record.headers, (SOURCE_OFFSET, str(metadata.offset).encode()))))


def _windowed_aggregates(grouped: sf.KGroupedStream[str, int]) -> None:
    windows = sf.TimeWindows(size=timedelta(milliseconds=WINDOW_MS), grace=timedelta(milliseconds=GRACE_MS))
    every = grouped.windowed_by(windows).reduce(min, materialized=_kept_windows("window-min"))
    every.to_stream().to(output_topic("window-min"), key_serde=WINDOWED, value_serde=LONG, partitioner=_with_key)
    once = grouped.windowed_by(windows).emit_strategy(sf.EmitStrategy.ON_WINDOW_CLOSE)
    closed = once.reduce(min, materialized=_kept_windows("window-closed"))
    closed.to_stream().to(output_topic("window-closed"), key_serde=WINDOWED, value_serde=LONG, partitioner=_with_key)


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
