"""Topologies and inputs that nobody thought of, for hypothesis: as plain values, which it can shrink and print, and what they mean.

A step of the DSL says an operator, which of the streams before it is applied to, and a number that its function depends on.
Functions, processors and handlers write down what they were called with: two executions have to agree on that, too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

import streamfleet as sf

TEXT = sf.serdes.string()
IN, MORE, TABLE, PLACES = "in", "more", "table", "places"
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
    "unserializable",
    "repartition",
]
STATEFUL = [
    "count",
    "reduce",
    "aggregate",
    "group_by",
    "windowed",
    "sliding",
    "sessions",
    "suppressed",
    "join_table",
    "left_join_table",
    "join_stream",
    "left_join_stream",
    "outer_join_stream",
    "to_table",
    "table_of_tables",
    "foreign_key",
    "join_global",
    "cogroup",
    "transform",
    "group_table",
]


@dataclass(frozen=True)
class Step:
    op: str
    on: int = 0
    other: int = 0
    n: int = 0


@dataclass(frozen=True)
class Input:
    topic: str
    key: str | None
    value: bytes | None
    timestamp: int
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True)
class Setting:
    """`chunk` inputs are processed between two commits."""

    processing: str = "fail"
    production: str = "fail"
    deserialization: str = "continue"
    dead_letters: bool = False
    cache: bool = False
    chunk: int = 1


@dataclass
class Case:
    topology: Any
    calls: list[Any] = field(default_factory=list)


class Boom(Exception):
    pass


class Unserializable:
    def __repr__(self) -> str:
        return "unserializable"


steps = st.builds(
    Step,
    op=st.one_of(st.sampled_from(STATELESS), st.sampled_from(STATELESS), st.sampled_from(STATEFUL)),
    on=st.integers(0, 7),
    other=st.integers(0, 7),
    n=st.integers(0, 7),
)
inputs = st.builds(
    Input,
    topic=st.sampled_from([IN, IN, MORE, TABLE, PLACES]),
    key=st.sampled_from(["a", "b", "c", None]),
    value=st.one_of(st.text("xyz", max_size=7).map(str.encode), st.sampled_from([None, UNREADABLE])),
    timestamp=st.integers(1, 60),
    headers=st.sampled_from([(), (), (("h", b"1"),), (("h", b"1"), ("h", None))]),
)
settings = st.builds(
    Setting,
    processing=st.sampled_from(["continue", "continue", "fail"]),
    production=st.sampled_from(["continue", "fail"]),
    deserialization=st.sampled_from(["continue", "continue", "fail"]),
    dead_letters=st.booleans(),
    cache=st.booleans(),
    chunk=st.sampled_from([1, 3, 50]),
)


class Functions:
    """The users' functions of one case. `number`: which of them; results depend on nothing but arguments and `n`."""

    def __init__(self, calls: list[Any]) -> None:
        self._calls = calls

    def _noted(self, what: str, n: int, *arguments: Any) -> int:
        """A small number from what the function was called with. Some of them raise."""
        self._calls.append((what, *map(repr, arguments)))
        shown = sum(map(len, map(repr, arguments)))
        if n == 7 and shown % 4 == 0:
            raise Boom(f"{what} {arguments!r}")
        return (shown + n) % 5

    def predicate(self, n):
        return lambda k, v: self._noted("predicate", n, k, v) % 2

    def pair(self, n):
        def pair(k, v):
            found = self._noted("pair", n, k, v)
            return "no pair" if n == 5 and found == 0 else (f"{k}{found}"[-2:], f"{v}{found}"[-6:])

        return pair

    def pairs(self, n):
        return lambda k, v: [
            ("ab"[i % 2], f"{v}{i}"[-6:]) if (n, i) != (6, 2) else None for i in range(self._noted("pairs", n, k, v))
        ]

    def value(self, n):
        return lambda v: f"{v}{self._noted('value', n, v)}"[-6:]

    def value_of_both(self, n):
        return lambda k, v: f"{k}{v}{self._noted('value', n, k, v)}"[-6:]

    def values(self, n):
        return lambda v: (f"{v}{i}"[-6:] for i in range(self._noted("values", n, v)))

    def key(self, n):
        return lambda k, v: "abc"[self._noted("key", n, k, v) % 3]

    def action(self, n):
        return lambda k, v: self._noted("action", n, k, v)

    def joined(self, n):
        return lambda left, right: f"{left}+{right}:{self._noted('joined', n, left, right)}"[-8:]

    def reduced(self, n):
        return lambda before, v: f"{v}{self._noted('reduced', n, before, v)}"[-6:]

    def aggregated(self, n):
        def aggregated(k, v, before):
            found = self._noted("aggregated", n, k, v, before)
            return None if n == 6 and found == 0 else f"{before}{v}"[-6:]

        return aggregated

    def bad_value(self, n):
        return lambda v: Unserializable() if self._noted("bad", n, v) == n else v

    def topic(self, n):
        return lambda k, v, context: f"chosen-{self._noted('topic', n, k, v) % 2}" if n != 6 else ""


class Acting(sf.Processor):
    """A processor that does what its number says: forwards, forwards changed, stores, punctuates, fails, catches."""

    def __init__(self, functions, n, children=(), store=None):
        self._functions, self._n, self._children, self._store_name = functions, n, children, store

    def init(self, context):
        super().init(context)
        self._kept = None
        if self._store_name is not None:
            self._store = context.get_state_store(self._store_name)
        if self._n in (1, 6):
            context.schedule(10, sf.PunctuationType.STREAM_TIME, self._punctuate)
        if self._n == 2:
            context.schedule(5, sf.PunctuationType.WALL_CLOCK_TIME, self._punctuate)

    def _punctuate(self, now):
        found = self._functions._noted("punctuate", self._n, now, self._kept, self.context.record_metadata())
        if self._n == 6 and found == 0:
            raise Boom("punctuator")
        self.context.forward(sf.Record("p", str(self._kept), now, (("at", str(now).encode()),)))

    def process(self, record):
        context, n = self.context, self._n
        metadata = context.record_metadata()
        found = self._functions._noted("process", n, record, metadata, context.current_stream_time_ms())
        self._kept = record.value
        if self._store_name is not None and record.key is not None:
            seen = self._store.get(record.key)
            self._store.put(record.key, f"{seen}{record.value}"[-6:])
            record = record.with_value(f"{record.value}{seen}"[-6:])
        if n == 3:
            context.forward(record.with_timestamp(record.timestamp + found))
            context.forward(record.with_headers((*record.headers, ("n", b"3"))).with_key("c"))
        elif n == 4:
            try:
                context.forward(record)
            except Exception as error:
                self._functions._noted("caught", 0, str(error))
        elif self._children:
            context.forward(record, self._children[found % len(self._children)])
            context.forward(record.with_key("b"))
        else:
            context.forward(record)


class ActingOnValues(sf.FixedKeyProcessor):
    def __init__(self, functions, n):
        self._functions, self._n = functions, n

    def process(self, record):
        found = self._functions._noted("process_values", self._n, record)
        for i in range(found % 3):
            self.context.forward(record.with_value(f"{record.value}{i}").with_timestamp(record.timestamp + i))
        if self._n == 6 and found == 0:
            self.context.forward(sf.FixedKeyRecord("other", "v", record.timestamp))


class Transforming(sf.ValueTransformer):
    def __init__(self, functions, n):
        self._functions, self._n = functions, n

    def transform(self, key, value):
        return f"{value}{self._functions._noted('transform', self._n, key, value)}"[-6:]


def dsl_case(found: list[Step], config: sf.StreamsConfig) -> Case:
    """Build a topology from steps; what a step cannot be applied to is left out."""
    case = Case(None)
    builder = _Building(Functions(case.calls), config)
    for number, step in enumerate(found):
        builder.apply(number, step)
    builder.end()
    case.topology = builder.builder.build(config)
    return case


class _Building:
    def __init__(self, functions: Functions, config: sf.StreamsConfig) -> None:
        self.f = functions
        self.builder = sf.StreamsBuilder(config)
        self.streams: list[Any] = [self.builder.stream(IN), self.builder.stream(MORE)]
        self.table: Any = self.builder.table(TABLE, store="the-table")
        self.places: Any = None

    def apply(self, number: int, step: Step) -> None:
        stream = self.streams[step.on % len(self.streams)]
        other = self.streams[step.other % len(self.streams)]
        made = getattr(self, f"_{step.op}")(stream, other, step.n, f"s{number}")
        self.streams += [] if made is None else made if isinstance(made, list) else [made]

    def end(self) -> None:
        for number, stream in enumerate(self.streams):
            if number % 3 != 1:
                stream.to(f"out-{number}")

    # without state

    def _filter(self, stream, other, n, name):
        return stream.filter(self.f.predicate(n))

    def _filter_not(self, stream, other, n, name):
        return stream.filter_not(self.f.predicate(n))

    def _map(self, stream, other, n, name):
        return stream.map(self.f.pair(n))

    def _map_values(self, stream, other, n, name):
        return stream.map_values(self.f.value(n))

    def _map_values_with_key(self, stream, other, n, name):
        return stream.map_values(self.f.value_of_both(n), with_key=True)

    def _select_key(self, stream, other, n, name):
        return stream.select_key(self.f.key(n))

    def _flat_map(self, stream, other, n, name):
        return stream.flat_map(self.f.pairs(n))

    def _flat_map_values(self, stream, other, n, name):
        return stream.flat_map_values(self.f.values(n))

    def _peek(self, stream, other, n, name):
        return stream.peek(self.f.action(n))

    def _foreach(self, stream, other, n, name):
        stream.foreach(self.f.action(n))

    def _split(self, stream, other, n, name):
        split = stream.split(name=name)
        for i in range(n % 4):
            split = split.branch(self.f.predicate(n + i))
        return list((split.default_branch() if n % 2 else split.no_default_branch()).values())[: 1 + n % 3]

    def _merge(self, stream, other, n, name):
        return stream.merge(other) if stream is not other else None

    def _process(self, stream, other, n, name):
        stores = [name] if n % 2 else []
        if stores:
            self.builder.add_state_store(sf.Stores.key_value(name, key_serde=TEXT, value_serde=TEXT))
        return stream.process(lambda: Acting(self.f, n, store=name if stores else None), stores=stores)

    def _process_values(self, stream, other, n, name):
        return stream.process_values(lambda: ActingOnValues(self.f, n))

    def _to(self, stream, other, n, name):
        stream.to(f"out-{name}")

    def _to_chosen(self, stream, other, n, name):
        stream.to(self.f.topic(n))

    def _unserializable(self, stream, other, n, name):
        return stream.map_values(self.f.bad_value(n))

    def _repartition(self, stream, other, n, name):
        return stream.repartition(name=name)

    # with state

    def _grouped(self, stream):
        return stream.group_by_key(key_serde=TEXT, value_serde=TEXT)

    def _count(self, stream, other, n, name):
        return self._grouped(stream).count(store=name).to_stream().map_values(str)

    def _reduce(self, stream, other, n, name):
        return self._grouped(stream).reduce(self.f.reduced(n), store=name).to_stream()

    def _aggregate(self, stream, other, n, name):
        table = self._grouped(stream).aggregate(str, self.f.aggregated(n), materialized=_stored(name))
        return table.filter(self.f.predicate(n)).to_stream()

    def _group_by(self, stream, other, n, name):
        grouped = stream.group_by(self.f.key(n), key_serde=TEXT, value_serde=TEXT, name=name)
        return grouped.count(store=f"{name}-count").map_values(str).to_stream()

    def _windowed(self, stream, other, n, name):
        counts = self._grouped(stream).windowed_by(sf.TimeWindows(size=10, advance=5, grace=5 * (n % 3))).count()
        return counts.to_stream().map(lambda k, v: (str(k), str(v)))

    def _sliding(self, stream, other, n, name):
        counts = self._grouped(stream).windowed_by(sf.SlidingWindows(difference=10, grace=5 * (n % 3))).count()
        return counts.to_stream().map(lambda k, v: (str(k), str(v)))

    def _sessions(self, stream, other, n, name):
        counts = self._grouped(stream).windowed_by(sf.SessionWindows(gap=5, grace=10)).count()
        return counts.to_stream().map(lambda k, v: (str(k), str(v)))

    def _suppressed(self, stream, other, n, name):
        counts = self._grouped(stream).windowed_by(sf.TimeWindows(size=10, grace=n)).count()
        held = counts.suppress(sf.Suppressed.until_window_closes(sf.BufferConfig.unbounded()))
        return held.to_stream().map(lambda k, v: (str(k), str(v)))

    def _join_table(self, stream, other, n, name):
        return stream.join(self.table, self.f.joined(n), key_serde=TEXT, value_serde=TEXT)

    def _left_join_table(self, stream, other, n, name):
        return stream.left_join(self.table, self.f.joined(n), key_serde=TEXT, value_serde=TEXT)

    def _of_streams(self, join, other, n):
        window = sf.JoinWindows(before=5, after=5, grace=n)
        serdes = {"key_serde": TEXT, "value_serde": TEXT, "other_value_serde": TEXT}
        return join(other, self.f.joined(n), window=window, **serdes)

    def _join_stream(self, stream, other, n, name):
        return self._of_streams(stream.join, other, n)

    def _left_join_stream(self, stream, other, n, name):
        return self._of_streams(stream.left_join, other, n)

    def _outer_join_stream(self, stream, other, n, name):
        return self._of_streams(stream.outer_join, other, n)

    def _to_table(self, stream, other, n, name):
        return stream.to_table(materialized=_stored(name)).map_values(self.f.value(n)).to_stream()

    def _table_of_tables(self, stream, other, n, name):
        table = stream.to_table(materialized=_stored(name))
        return table.outer_join(self.table, self.f.joined(n)).to_stream()

    def _foreign_key(self, stream, other, n, name):
        table = stream.to_table(materialized=_stored(name))
        key = lambda v: "abc"[self.f._noted("foreign", n, v) % 3]
        return table.left_join(self.table, self.f.joined(n), foreign_key=key).to_stream()

    def _join_global(self, stream, other, n, name):
        if self.places is None:
            self.places = self.builder.global_table(PLACES)
        return stream.left_join(self.places, self.f.joined(n), key_selector=self.f.key(n))

    def _cogroup(self, stream, other, n, name):
        cogrouped = self._grouped(stream).cogroup(self.f.aggregated(n))
        if other is not stream:
            cogrouped = cogrouped.cogroup(self._grouped(other), self.f.aggregated(0))
        return cogrouped.aggregate(str, materialized=_stored(name)).to_stream()

    def _transform(self, stream, other, n, name):
        return self.table.transform_values(lambda: Transforming(self.f, n)).to_stream()

    def _group_table(self, stream, other, n, name):
        pair = lambda k, v: ("abc"[self.f._noted("group", n, k, v) % 3], v)
        grouped = self.table.group_by(pair, key_serde=TEXT, value_serde=TEXT)
        return grouped.count(store=name).to_stream().map_values(str)


def _stored(name: str) -> sf.Materialized:
    return sf.Materialized(name, key_serde=TEXT, value_serde=TEXT)


@dataclass(frozen=True)
class PapiNode:
    parents: tuple[int, ...]
    kind: str
    n: int
    by_name: bool = False


papi_nodes = st.builds(
    PapiNode,
    parents=st.lists(st.integers(0, 9), min_size=1, max_size=3).map(tuple),
    kind=st.sampled_from(["processor", "processor", "stored", "fixed", "sink", "chosen"]),
    n=st.integers(0, 7),
    by_name=st.booleans(),
)

ODD_NAMES = ("p {}", "p'{}'", 'p"{}"', "p\n{}", "ü-{}", "class{}", "{}", "p#{}\\", "a-{}", "a_{}")


def papi_case(found: list[PapiNode], _config: sf.StreamsConfig) -> Case:
    """Processor API: any graph, names that no Python name could be, children called by name."""
    case = Case(sf.Topology())
    functions = Functions(case.calls)
    topology = case.topology
    topology.add_source("from in", IN)
    topology.add_source("from more", [MORE, TABLE])
    callers = ["from in", "from more"]
    children: dict[str, list[str]] = {name: [] for name in callers}
    for number, node in enumerate(found):
        name = ODD_NAMES[number % len(ODD_NAMES)].format(number)
        parents = list(dict.fromkeys(callers[parent % len(callers)] for parent in node.parents))
        for parent in parents:
            children[parent].append(name)
        if node.kind in ("sink", "chosen"):
            topic = f"out-{number}" if node.kind == "sink" else functions.topic(node.n)
            topology.add_sink(name, topic, *parents)
            continue
        children[name] = []
        callers.append(name)
        topology.add_processor(name, _supplier(functions, node, number, children[name]), *parents)
        if node.kind == "stored":
            store = sf.Stores.key_value(f"store-{number}", key_serde=TEXT, value_serde=TEXT)
            topology.add_state_store(store, name)
    return case


def _supplier(functions, node, number, children):
    if node.kind == "fixed":
        return lambda: ActingOnValues(functions, node.n)
    store = f"store-{number}" if node.kind == "stored" else None
    # The list is complete when a processor is made; one name too many makes it ask for a child it has not.
    named = (lambda: (*children, "nobody") if node.n == 5 else tuple(children)) if node.by_name else tuple
    return lambda: Acting(functions, node.n, named(), store)
