"""Topologies and inputs that nobody thought of, for hypothesis: as plain values, which it can shrink and print.

A step of the DSL says an operator, which of the streams or tables before it is applied to, and a number that its function depends
on. What steps and nodes mean is in random_dsl.py and random_graphs.py, the users' code they run in random_user_code.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

import streamfleet as sf

TEXT = sf.serdes.string()
IN, MORE, TABLE, PLACES, HISTORY, SHARED = "in", "more", "table", "places", "history", "shared"
UNREADABLE = b"\xff"
STATELESS = [
    "filter",
    "filter_not",
    "map",
    "map_values",
    "map_values_with_key",
    "select_key",
    "flat_map",
    "flat_map_values",
    "peek",
    "foreach",
    "split",
    "merge",
    "process",
    "process_values",
    "to",
    "to_chosen",
    "to_partitions",
    "unserializable",
    "repartition",
]
STATEFUL = [
    "count",
    "reduce",
    "aggregate",
    "group_by",
    "windowed",
    "windowed_aggregate",
    "sliding",
    "sessions",
    "session_aggregate",
    "suppressed",
    "suppressed_sessions",
    "join_table",
    "left_join_table",
    "join_history",
    "left_join_history",
    "join_stream",
    "left_join_stream",
    "outer_join_stream",
    "join_itself",
    "join_global",
    "left_join_global",
    "read_shared",
    "cogroup",
    "windowed_cogroup",
    "sliding_cogroup",
    "session_cogroup",
]
ON_TABLES = [
    "to_table",
    "to_history",
    "table_filter",
    "table_filter_not",
    "table_map",
    "stored_map",
    "transform",
    "rekeyed",
    "join_tables",
    "left_join_tables",
    "outer_join_tables",
    "foreign_key",
    "left_foreign_key",
    "held_back",
    "group_table",
    "reduce_table",
    "aggregate_table",
]


@dataclass(frozen=True)
class Step:
    op: str
    on: int = 0
    other: int = 0
    n: int = 0


@dataclass(frozen=True)
class PapiNode:
    parents: tuple[int, ...]
    kind: str
    n: int
    by_name: bool = False


@dataclass(frozen=True)
class Input:
    topic: str
    key: str | None
    value: bytes | None
    timestamp: int
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True)
class Setting:
    """`chunk` inputs are processed between two commits. `chosen`: a handler of the user's, whose answer depends on the error.
    `apart`: every sub-topology is a program of its own, as on a cluster; else one program has all, as in the test driver.
    """

    processing: str = "fail"
    production: str = "fail"
    deserialization: str = "continue"
    dead_letters: bool = False
    cache: bool = False
    chunk: int = 1
    deduplicate: bool = True
    optimized: bool = False
    wrapped: bool = False
    extractor: bool = False
    apart: bool = False


numbers = st.integers(0, 11)
steps = st.builds(
    Step,
    op=st.one_of(*[st.sampled_from(STATELESS)] * 2, st.sampled_from(STATEFUL), st.sampled_from(ON_TABLES)),
    on=st.integers(0, 7),
    other=st.integers(0, 7),
    n=numbers,
)
papi_nodes = st.builds(
    PapiNode,
    parents=st.lists(st.integers(0, 9), min_size=1, max_size=3).map(tuple),
    kind=st.sampled_from(["processor", "processor", "stored", "shared", "fixed", "sink", "chosen", "partitions"]),
    n=numbers,
    by_name=st.booleans(),
)
inputs = st.builds(
    Input,
    topic=st.sampled_from([IN, IN, IN, MORE, TABLE, TABLE, PLACES, HISTORY, SHARED]),
    key=st.sampled_from(["a", "b", "c", None]),
    value=st.one_of(st.text("xyz", max_size=7).map(str.encode), st.sampled_from([None, UNREADABLE])),
    timestamp=st.integers(1, 60),
    headers=st.sampled_from([(), (), (("h", b"1"),), (("h", b"1"), ("h", None))]),
)
settings = st.builds(
    Setting,
    processing=st.sampled_from(["continue", "continue", "fail", "chosen"]),
    production=st.sampled_from(["continue", "fail", "chosen"]),
    deserialization=st.sampled_from(["continue", "continue", "fail"]),
    dead_letters=st.booleans(),
    cache=st.booleans(),
    chunk=st.sampled_from([1, 3, 50]),
    deduplicate=st.booleans(),
    optimized=st.booleans(),
    wrapped=st.sampled_from([False, False, True]),
    extractor=st.sampled_from([False, False, True]),
    apart=st.booleans(),
)
