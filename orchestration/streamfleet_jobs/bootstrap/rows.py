"""Aggregates become rows of the store: the engine's own serdes write key and value, Kafka's murmur2 names the partition.

Called by both engines, in this process or in Spark's workers, with batches whose columns are

    key, timestamp, f0, f1 ...          one row per key; a column per function, in the spec's order

and gives back

    partition, key, value, timestamp    as the changelog has them. A row of the store is the timestamp (8 bytes) and the value
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa

import streamfleet as sf
from streamfleet_jobs.bootstrap.spec import BootstrapSpec
from streamfleet_jobs.columns.binary import binary_values
from streamfleet_jobs.columns.partitioners import murmur2_partitions
from streamfleet_jobs.errors import RefusedError

ROWS = pa.schema([("partition", pa.int32()), ("key", pa.binary()), ("value", pa.binary()), ("timestamp", pa.int64())])
_TIMESTAMP_SIZE = 8

_SERDES: dict[str, Callable[[], Any]] = {
    "string": sf.serdes.string,
    "bytes": sf.serdes.bytes,
    "boolean": sf.serdes.boolean,
    "short": sf.serdes.short,
    "integer": sf.serdes.integer,
    "long": sf.serdes.long,
    "double": sf.serdes.double,
    "uuid": sf.serdes.uuid,
    "json": sf.serdes.json,
    "msgpack": sf.serdes.msgpack,
}


def serde(name: str) -> Any:
    return _SERDES[name]()


def encoded(batch: Any, spec: BootstrapSpec) -> Any:
    """A batch of aggregates as a batch of rows, in the same order."""
    write_key, write_value = serde(spec.store.key_serde).serialize, serde(spec.store.value_serde).serialize
    topic, assembled = spec.changelog, assembler(spec)
    columns = [_plain(batch.column(f"f{at}").to_pylist()) for at in range(len(spec.value.functions))]
    try:
        keys = [write_key(topic, key) for key in batch.column("key").to_pylist()]
        values = [write_value(topic, assembled(results)) for results in zip(*columns, strict=True)]
    except (TypeError, ValueError) as error:
        raise RefusedError(
            f"what was computed cannot be written by the store's serdes: {error}",
            hint="compare the columns' types with the store's serdes",
        ) from error
    key_column = pa.array(keys, pa.binary())
    places = murmur2_partitions(binary_values(key_column), spec.store.partitions)
    columns = [pa.array(places, pa.int32()), key_column, pa.array(values, pa.binary()), batch.column("timestamp")]
    return pa.RecordBatch.from_arrays(columns, schema=ROWS)


def assembler(spec: BootstrapSpec) -> Callable[[tuple[Any, ...]], Any]:
    """From the functions' results to the value."""
    if spec.value.of is not None:
        return lambda results: results[0]
    names = tuple(spec.value.fields)
    return lambda results: dict(zip(names, results, strict=True))


def store_value(value: bytes, timestamp: int) -> bytes:
    """A value as the store's row has it."""
    return timestamp.to_bytes(_TIMESTAMP_SIZE, "big", signed=True) + value


def logged_value(stored: bytes) -> tuple[bytes, int]:
    """The other way: value and timestamp, as the changelog has them."""
    return stored[_TIMESTAMP_SIZE:], int.from_bytes(stored[:_TIMESTAMP_SIZE], "big", signed=True)


def _plain(values: list[Any]) -> list[Any]:
    """Sums of integers are made as decimals, so that they cannot overflow unseen."""
    return [int(value) if isinstance(value, Decimal) and value.as_tuple().exponent == 0 else value for value in values]
