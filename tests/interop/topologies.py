"""The topologies that change hands. java/src/main/java/interop/Topologies.java has them once more.

| name | what must survive a takeover |
| --- | --- |
| windows | counts by window, dropped late records, and the partition time, which values `now` take as their timestamp |
| sessions | sessions that grow and merge, behind a repartition topic |
| join | both tables of an outer join and their result, deletes included |
| final | which closed windows were emitted already |
| generated | topics and stores without names of their own |
| foreign | subscriptions of two foreign-key joins, and the topics in which they and their answers travel |

`INPUTS` and `OUTPUTS` are the topics of each, without the prefix they get.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import streamfleet as sf

STRING, LONG = sf.serdes.string(), sf.serdes.long()
SIZE, GAP, GRACE = timedelta(seconds=10), timedelta(seconds=5), timedelta(seconds=5)
WINDOWED, SESSION = sf.serdes.windowed(STRING, size=SIZE), sf.serdes.session_windowed(STRING)

INPUTS = {
    "windows": ("in",),
    "sessions": ("in",),
    "join": ("left", "right"),
    "final": ("in",),
    "generated": ("in", "left", "right"),
    "foreign": ("orders", "users"),
}
OUTPUTS = {
    "windows": ("out",),
    "sessions": ("out",),
    "join": ("out",),
    "final": ("out",),
    "generated": ("counts", "out"),
    "foreign": ("out", "all"),
}
NAMES = tuple(INPUTS)
ORDERED = tuple(name for name in NAMES if name != "foreign")
"""Whose results have a known order. What goes round by a foreign key meets others on its way: only how a row ends is known."""

Table = sf.KTable[str, str]


class PartitionTimeIfAsked(sf.TimestampExtractor):
    def extract(self, record: sf.ConsumedRecord[Any, Any], partition_time: int) -> int:
        return partition_time if record.value == "now" else record.timestamp


def topology(name: str, topics: str) -> sf.Topology:
    builder = sf.StreamsBuilder()
    _BUILDERS[name](builder, topics)
    return builder.build()


def _windows(builder: sf.StreamsBuilder, topics: str) -> None:
    (
        builder.stream(f"{topics}-in", key_serde=STRING, value_serde=STRING, timestamp_extractor=PartitionTimeIfAsked())
        .group_by_key()
        .windowed_by(sf.TimeWindows(size=SIZE, grace=GRACE))
        .count(name="count-windows", store="windows")
        .to_stream(name="window-counts")
        .to(f"{topics}-out", key_serde=WINDOWED, value_serde=LONG)
    )


def _sessions(builder: sf.StreamsBuilder, topics: str) -> None:
    (
        builder.stream(f"{topics}-in")
        .group_by(lambda device, _: _user_of(device), name="by-user")
        .windowed_by(sf.SessionWindows(gap=GAP, grace=GRACE))
        .count(name="count-sessions", store="sessions")
        .to_stream(name="session-counts")
        .to(f"{topics}-out", key_serde=SESSION, value_serde=LONG)
    )


def _join(builder: sf.StreamsBuilder, topics: str) -> None:
    left: Table = builder.table(f"{topics}-left", store="left")
    right: Table = builder.table(f"{topics}-right", store="right")
    left.outer_join(right, _joined, name="both", store="joined").to_stream(name="joined-rows").to(f"{topics}-out")


def _final(builder: sf.StreamsBuilder, topics: str) -> None:
    (
        builder.stream(f"{topics}-in")
        .group_by_key()
        .windowed_by(sf.TimeWindows(size=SIZE, grace=GRACE))
        .emit_strategy(sf.EmitStrategy.ON_WINDOW_CLOSE)
        .count(name="count-closed", store="closed")
        .to_stream(name="closed-counts")
        .to(f"{topics}-out", key_serde=WINDOWED, value_serde=LONG)
    )


def _generated(builder: sf.StreamsBuilder, topics: str) -> None:
    (
        builder.stream(f"{topics}-in")
        .group_by(lambda device, _: _user_of(device))
        .windowed_by(sf.TimeWindows(size=SIZE, grace=GRACE))
        .count()
        .to_stream()
        .to(f"{topics}-counts", key_serde=WINDOWED, value_serde=LONG)
    )
    left: Table = builder.table(f"{topics}-left")
    right: Table = builder.table(f"{topics}-right")
    left.outer_join(right, _joined).to_stream().to(f"{topics}-out")


def _foreign(builder: sf.StreamsBuilder, topics: str) -> None:
    orders: Table = builder.table(f"{topics}-orders", store="orders")
    users: Table = builder.table(f"{topics}-users", store="users")
    inner = orders.join(users, _joined, foreign_key=_named_user, name="by-user", store="joined")
    inner.to_stream(name="joined-rows").to(f"{topics}-out")
    left = orders.left_join(users, _joined, foreign_key=_named_user, name="by-any-user", store="all-joined")
    left.to_stream(name="all-joined-rows").to(f"{topics}-all")


def _named_user(order: str) -> str | None:
    return None if order == "nobody" else order


def _user_of(device: str) -> str:
    return device.partition("/")[0]


def _joined(left: str | None, right: str | None) -> str:
    return f"{left or '-'}+{right or '-'}"


_BUILDERS = {
    "windows": _windows,
    "sessions": _sessions,
    "join": _join,
    "final": _final,
    "generated": _generated,
    "foreign": _foreign,
}
