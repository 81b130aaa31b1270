"""From steps to a topology of the DSL. What a step cannot be applied to is left out."""

from __future__ import annotations

from typing import Any

from tests.unit.streamfleet.compiler.random_topologies import HISTORY, IN, MORE, PLACES, SHARED, TABLE, TEXT, Step
from tests.unit.streamfleet.compiler.random_user_code import (
    Acting,
    ActingOnValues,
    Extracting,
    Functions,
    Looking,
    Transforming,
    Updating,
)

import streamfleet as sf

FEED = "shared-store"


def dsl_topology(found: list[Step], functions: Functions, config: sf.StreamsConfig, *, extractor: bool) -> sf.Topology:
    building = _Building(functions, config, Extracting(functions) if extractor else None)
    for number, step in enumerate(found):
        building.apply(number, step)
    building.end()
    return building.builder.build(config)


class _Building:
    """One method per operator: it is given a stream, another stream, a number and a name, and adds to streams or tables."""

    def __init__(self, functions: Functions, config: sf.StreamsConfig, extractor: Any) -> None:
        self.f = functions
        self.builder = sf.StreamsBuilder(config)
        self.streams: list[Any] = [self.builder.stream(IN, timestamp_extractor=extractor), self.builder.stream(MORE)]
        self.tables: list[Any] = [self.builder.table(TABLE, store="the-table")]
        self._made: dict[str, Any] = {}

    def apply(self, number: int, step: Step) -> None:
        stream = self.streams[step.on % len(self.streams)]
        other = self.streams[step.other % len(self.streams)]
        self._table = self.tables[step.on % len(self.tables)]
        self._other_table = self.tables[step.other % len(self.tables)]
        try:
            made = getattr(self, f"_{step.op}")(stream, other, step.n, f"s{number}")
        except (sf.TopologyError, sf.OptionError):
            return  # not every operator can follow every other
        for each in made if isinstance(made, list) else [] if made is None else [made]:
            (self.streams if isinstance(each, sf.KStream) else self.tables).append(each)

    def end(self) -> None:
        for number, stream in enumerate(self.streams):
            if number % 3 != 1:
                stream.to(f"out-{number}")
        for number, table in enumerate(self.tables[1:]):
            table.to_stream().to(f"table-{number}")

    def _once(self, name, make):
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]

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

    def _to_partitions(self, stream, other, n, name):
        stream.to(f"out-{name}", partitioner=self.f.partitions(n))

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
        return self._grouped(stream).reduce(self.f.reduced(n), store=name)

    def _aggregate(self, stream, other, n, name):
        return self._grouped(stream).aggregate(
            self.f.initial(n), self.f.aggregated(n), materialized=_stored(name, n == 3)
        )

    def _group_by(self, stream, other, n, name):
        grouped = stream.group_by(self.f.key(n), key_serde=TEXT, value_serde=TEXT, name=name)
        return grouped.count(store=f"{name}-count").map_values(str).to_stream()

    def _time_windows(self, n):
        return sf.TimeWindows(size=10, advance=5 if n % 2 else 10, grace=5 * (n % 3))

    def _windowed(self, stream, other, n, name):
        return _flat(self._grouped(stream).windowed_by(self._time_windows(n)).count())

    def _windowed_aggregate(self, stream, other, n, name):
        windowed = self._grouped(stream).windowed_by(self._time_windows(n) if n % 4 else sf.UnlimitedWindows())
        if n % 4 and n > 5:
            windowed = windowed.emit_strategy(sf.EmitStrategy.ON_WINDOW_CLOSE)
        return _flat(windowed.aggregate(self.f.initial(n), self.f.aggregated(n), materialized=_stored(name)))

    def _sliding(self, stream, other, n, name):
        windows = sf.SlidingWindows(difference=10, grace=5 * (n % 3))
        return _flat(self._grouped(stream).windowed_by(windows).reduce(self.f.reduced(n)))

    def _sessions(self, stream, other, n, name):
        windowed = self._grouped(stream).windowed_by(sf.SessionWindows(gap=5, grace=10))
        if n > 6:
            windowed = windowed.emit_strategy(sf.EmitStrategy.ON_WINDOW_CLOSE)
        return _flat(windowed.count())

    def _session_aggregate(self, stream, other, n, name):
        merger = lambda k, one, two: f"{one}{two}{self.f.noted('merged', n, k, one, two)}"[-6:]
        windowed = self._grouped(stream).windowed_by(sf.SessionWindows(gap=5, grace=10))
        made = windowed.aggregate(self.f.initial(n), self.f.aggregated(n), merger, materialized=_stored(name))
        return _flat(made)

    def _suppressed(self, stream, other, n, name):
        counts = self._grouped(stream).windowed_by(sf.TimeWindows(size=10, grace=n)).count()
        bounded = sf.BufferConfig.max_records(2).shut_down_when_full()
        buffer = bounded if n == 7 else sf.BufferConfig.unbounded()
        return _flat(counts.suppress(sf.Suppressed.until_window_closes(buffer)))

    def _suppressed_sessions(self, stream, other, n, name):
        sessions = self._grouped(stream).windowed_by(sf.SessionWindows(gap=5, grace=n)).count()
        return _flat(sessions.suppress(sf.Suppressed.until_window_closes(sf.BufferConfig.unbounded(), name=name)))

    # joins of streams

    def _join_table(self, stream, other, n, name):
        return stream.join(self._table, self.f.joined(n), key_serde=TEXT, value_serde=TEXT)

    def _left_join_table(self, stream, other, n, name):
        return stream.left_join(self._table, self.f.joined(n), key_serde=TEXT, value_serde=TEXT)

    def _history(self):
        def make():
            store = sf.Stores.versioned_key_value("history", history_retention=30, key_serde=TEXT, value_serde=TEXT)
            table = self.builder.table(HISTORY, materialized=sf.Materialized(store))
            self.tables.append(table)
            return table

        return self._once("history", make)

    def _join_history(self, stream, other, n, name):
        grace = {"grace": n} if n % 2 else {}
        return stream.join(self._history(), self.f.joined(n), key_serde=TEXT, value_serde=TEXT, name=name, **grace)

    def _left_join_history(self, stream, other, n, name):
        return stream.left_join(self._history(), self.f.joined(n), key_serde=TEXT, value_serde=TEXT, name=name, grace=n)

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

    def _join_itself(self, stream, other, n, name):
        return self._of_streams(stream.join, stream, n)

    def _places(self):
        return self._once("places", lambda: self.builder.global_table(PLACES))

    def _join_global(self, stream, other, n, name):
        return stream.join(self._places(), self.f.joined(n), key_selector=self.f.key(n))

    def _left_join_global(self, stream, other, n, name):
        return stream.left_join(self._places(), self.f.joined(n), key_selector=self.f.key(n))

    def _read_shared(self, stream, other, n, name):
        store = sf.Stores.key_value(FEED, key_serde=TEXT, value_serde=TEXT).with_logging(False)
        feed = lambda: self.builder.add_global_store(store, SHARED, lambda: Updating(self.f, FEED))
        self._once("shared", feed)
        return stream.process(lambda: Looking(self.f, n, FEED))

    def _cogrouped(self, stream, other, n):
        cogrouped = self._grouped(stream).cogroup(self.f.aggregated(n))
        return cogrouped if other is stream else cogrouped.cogroup(self._grouped(other), self.f.aggregated(0))

    def _cogroup(self, stream, other, n, name):
        return self._cogrouped(stream, other, n).aggregate(self.f.initial(n), materialized=_stored(name))

    def _windowed_cogroup(self, stream, other, n, name):
        windowed = self._cogrouped(stream, other, n).windowed_by(self._time_windows(n))
        return _flat(windowed.aggregate(self.f.initial(n), materialized=_stored(name)))

    def _sliding_cogroup(self, stream, other, n, name):
        windows = sf.SlidingWindows(difference=10, grace=5 * (n % 3))
        windowed = self._cogrouped(stream, other, n).windowed_by(windows)
        return _flat(windowed.aggregate(self.f.initial(n), materialized=_stored(name)))

    def _session_cogroup(self, stream, other, n, name):
        merger = lambda k, one, two: f"{one}{two}{self.f.noted('merged', n, k, one, two)}"[-6:]
        windowed = self._cogrouped(stream, other, n).windowed_by(sf.SessionWindows(gap=5, grace=n))
        return _flat(windowed.aggregate(self.f.initial(n), merger, materialized=_stored(name)))

    # tables

    def _to_history(self, stream, other, n, name):
        store = sf.Stores.versioned_key_value(name, history_retention=10 * n, key_serde=TEXT, value_serde=TEXT)
        return stream.to_table(materialized=sf.Materialized(store))

    def _to_table(self, stream, other, n, name):
        return stream.to_table(materialized=_stored(name, n == 3))

    def _table_filter(self, stream, other, n, name):
        return self._table.filter(self.f.predicate(n), store=name if n % 2 else None)

    def _table_filter_not(self, stream, other, n, name):
        return self._table.filter_not(self.f.predicate(n))

    def _table_map(self, stream, other, n, name):
        return self._table.map_values(self.f.value(n))

    def _stored_map(self, stream, other, n, name):
        return self._table.map_values(self.f.value(n), materialized=_stored(name))

    def _transform(self, stream, other, n, name):
        return self._table.transform_values(lambda: Transforming(self.f, n))

    def _rekeyed(self, stream, other, n, name):
        return self._table.to_stream(self.f.key(n))

    def _join_tables(self, stream, other, n, name):
        return self._table.join(self._other_table, self.f.joined(n), materialized=_stored(name) if n % 2 else None)

    def _left_join_tables(self, stream, other, n, name):
        return self._table.left_join(self._other_table, self.f.joined(n))

    def _outer_join_tables(self, stream, other, n, name):
        return self._table.outer_join(self._other_table, self.f.joined(n))

    def _foreign_key(self, stream, other, n, name):
        return self._table.join(self._other_table, self.f.joined(n), foreign_key=self.f.foreign_key(n))

    def _left_foreign_key(self, stream, other, n, name):
        return self._table.left_join(self._other_table, self.f.joined(n), foreign_key=self.f.foreign_key(n))

    def _held_back(self, stream, other, n, name):
        buffer = sf.BufferConfig.max_records(1) if n % 2 else sf.BufferConfig.unbounded()
        return self._table.suppress(sf.Suppressed.until_time_limit(n, buffer))

    def _grouped_table(self, n):
        return self._table.group_by(self.f.group(n), key_serde=TEXT, value_serde=TEXT)

    def _group_table(self, stream, other, n, name):
        return self._grouped_table(n).count(store=name).to_stream().map_values(str)

    def _reduce_table(self, stream, other, n, name):
        return self._grouped_table(n).reduce(self.f.reduced(n), self.f.reduced(0), materialized=_stored(name))

    def _aggregate_table(self, stream, other, n, name):
        functions = self.f.initial(n), self.f.aggregated(n), self.f.aggregated(0)
        return self._grouped_table(n).aggregate(*functions, materialized=_stored(name))


def _stored(name: str, uncached: bool = False) -> sf.Materialized:
    return sf.Materialized(name, key_serde=TEXT, value_serde=TEXT, caching=not uncached)


def _flat(table: Any) -> Any:
    return table.to_stream().map(lambda k, v: (str(k), str(v)))
