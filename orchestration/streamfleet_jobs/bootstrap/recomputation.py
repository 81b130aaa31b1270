"""A sample of keys, computed again record by record by the engine: its aggregation, its store, its test driver. Called by
verification's last step in job.py. Whether the app does the same to its records is looked at in own_topology.py.

What the engine makes of the table's rows in the order of their offsets must be, byte for byte, what was computed at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import streamfleet as sf
from streamfleet.testing import TopologyTestDriver
from streamfleet_jobs.bootstrap.rows import assembler, serde
from streamfleet_jobs.bootstrap.spec import BootstrapSpec
from streamfleet_jobs.bootstrap.staging import computed_rows
from streamfleet_jobs.columns.event_times import milliseconds
from streamfleet_jobs.errors import RefusedError

Place = tuple[int, int]
"""Partition and offset of a record of the input."""
_TOPIC, _STORE = "table", "sample"


class _InPlace:
    """A serde whose bytes are numbers of values that are kept here: columns need not survive a real one."""

    def __init__(self) -> None:
        self._values: list[Any] = []

    def serialize(self, _topic: str, value: Any) -> bytes | None:
        self._values.append(value)
        return (len(self._values) - 1).to_bytes(8, "big")

    def deserialize(self, _topic: str, data: bytes | None) -> Any:
        return None if data is None else self._values[int.from_bytes(data, "big")]


def check_sample(spec: BootstrapSpec, wanted: dict[bytes, tuple[bytes, int]]) -> int:
    """`wanted` are rows of the store by key. How many records the engine was given."""
    if not wanted:
        return 0
    key_serde, value_serde = serde(spec.store.key_serde), serde(spec.store.value_serde)
    keys = _keys(spec, wanted)
    records = _records(spec, keys)
    with TopologyTestDriver(_topology(spec), sf.StreamsConfig(application_id="bootstrap-sample")) as driver:
        topic = driver.input_topic(_TOPIC, key_serde, _INPUT)
        for key, columns, timestamp in records:
            topic.pipe(key, columns, timestamp=timestamp)
        store = driver.store(_STORE)
        for key, raw in zip(keys, wanted, strict=True):
            found = store.get(key)
            actual = None if found is None else _stored(spec, value_serde, found)
            if actual != wanted[raw]:
                raise RefusedError(
                    f"the engine computes {actual} for a key that was computed as {wanted[raw]}",
                    hint="this is a defect of the job: do not publish this epoch",
                )
    return len(records)


def choose_sample(spec: BootstrapSpec, computed: Path, rows: Mapping[int, int]) -> dict[bytes, tuple[bytes, int]]:
    """Spread over all partitions, which have so many rows: every n-th key of each."""
    share = -(-spec.sample_keys // spec.store.partitions)
    chosen: dict[bytes, tuple[bytes, int]] = {}
    for partition, count in rows.items():
        every = max(1, count // max(share, 1))
        picked = islice(computed_rows(computed, partition), 0, share * every, every)
        chosen |= {key: (value, at) for key, value, at in picked}
    return chosen


def places_of(spec: BootstrapSpec, wanted: Mapping[bytes, object]) -> dict[bytes, Sequence[Place]]:
    """Where the records are that the table has of each key."""
    if not wanted:
        return {}
    source, write = spec.source, serde(spec.store.key_serde).serialize
    table = _table(spec, _keys(spec, wanted), [source.key, source.partition, source.offset])
    found: dict[bytes, list[Place]] = defaultdict(list)
    for row in table.to_pylist():
        found[write(spec.changelog, row[source.key])].append((row[source.partition], row[source.offset]))
    return dict(found)


_INPUT = _InPlace()


def _stored(spec: BootstrapSpec, value_serde: Any, found: Any) -> tuple[bytes, int]:
    results = tuple(found.value[:-1])
    timestamp = found.timestamp if spec.value.timestamp == "max" else found.value[-1]
    return value_serde.serialize(spec.changelog, assembler(spec)(results)), timestamp


def _records(spec: BootstrapSpec, keys: list[Any]) -> list[tuple[Any, tuple[Any, ...], int]]:
    source = spec.source
    used = [function.column for function in spec.value.functions]
    names = [source.key, source.partition, source.offset, source.timestamp, *(name for name in used if name)]
    table = _table(spec, keys, list(dict.fromkeys(names)))
    times = milliseconds(table.column(source.timestamp)).to_pylist()
    return [
        (row[source.key], (*(name and row[name] for name in used), at), at)
        for row, at in zip(table.to_pylist(), times, strict=True)
    ]


def _keys(spec: BootstrapSpec, wanted: Mapping[bytes, object]) -> list[Any]:
    read = serde(spec.store.key_serde).deserialize
    return [read(spec.changelog, key) for key in wanted]


def _table(spec: BootstrapSpec, keys: list[Any], columns: list[str]) -> Any:
    """The rows of these keys, by partition and offset."""
    filters = pc.is_in(pc.field(spec.source.key), _array(spec, keys))
    table = pq.read_table(spec.source.parquet, columns=columns, filters=filters)
    return table.sort_by([(spec.source.partition, "ascending"), (spec.source.offset, "ascending")])


def _array(spec: BootstrapSpec, keys: list[Any]) -> Any:
    column = pq.ParquetDataset(spec.source.parquet).schema.field(spec.source.key)
    return pa.array(keys, column.type)


def _topology(spec: BootstrapSpec) -> sf.Topology:
    """Aggregates are kept as lists of results, with the last timestamp behind them."""
    folds = [_FOLDS[function.function] for function in spec.value.functions]

    def fold(_key: Any, columns: tuple[Any, ...], old: list[Any] | None) -> list[Any]:
        before = [None] * len(folds) if old is None else old[:-1]
        return [*(f(a, v) for f, a, v in zip(folds, before, columns[:-1], strict=True)), columns[-1]]

    builder = sf.StreamsBuilder()
    stream = builder.stream(_TOPIC, key_serde=serde(spec.store.key_serde), value_serde=_INPUT)
    materialized = sf.Materialized(_STORE, key_serde=serde(spec.store.key_serde), value_serde=_InPlace())
    stream.group_by_key().aggregate(lambda: None, fold, materialized=materialized)
    return builder.build()


_FOLDS: dict[str, Callable[[Any, Any], Any]] = {
    "count": lambda old, _: (old or 0) + 1,
    "sum": lambda old, value: value if old is None else old + value,
    "min": lambda old, value: value if old is None else min(old, value),
    "max": lambda old, value: value if old is None else max(old, value),
    "last": lambda _, value: value,
}
