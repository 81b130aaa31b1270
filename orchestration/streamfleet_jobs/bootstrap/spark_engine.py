"""The same aggregation as local_engine.py over Spark DataFrames, in this process or over Spark Connect. Called by job.py.

Rows are encoded in Spark's workers by the same code (rows.py), laid out with one task per partition of the store, sorted as bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 -- Spark's own habit
from pyspark.sql.types import DecimalType, IntegralType, TimestampNTZType, TimestampType

from streamfleet_jobs.bootstrap.local_engine import check_type, columns_of
from streamfleet_jobs.bootstrap.rows import encoded, serde
from streamfleet_jobs.bootstrap.source import PartitionFacts, SourceFacts
from streamfleet_jobs.bootstrap.spec import BootstrapSpec, Function
from streamfleet_jobs.columns.binary import binary_values
from streamfleet_jobs.columns.partitioners import murmur2_partitions
from streamfleet_jobs.errors import JobError, RefusedError, SpecError, UnavailableError

_ROWS = "partition int, key binary, value binary, timestamp long"


class SparkEngine:
    name = "spark"

    def __init__(self, spec: BootstrapSpec, session: SparkSession) -> None:
        self._spec = spec
        self._session = session

    def facts(self) -> SourceFacts:
        source, table = self._spec.source, self._read()
        counted = table.select([F.count_if(F.col(name).isNull()).alias(name) for name in columns_of(self._spec)])
        [nulls] = counted.collect()
        found = (
            table.where(F.col(source.partition).isNotNull())
            .groupBy(F.col(source.partition).alias("partition"))
            .agg(
                F.count("*").alias("rows"),
                F.count_distinct(source.offset).alias("distinct_offsets"),
                F.min(source.offset).alias("first"),
                F.max(source.offset).alias("last"),
                F.max("__time").alias("stream_time"),
            )
        )
        misplaced = self._misplaced(table)
        partitions = {
            row.partition: PartitionFacts(
                row.rows,
                row.distinct_offsets,
                row["first"],
                row["last"],
                row.stream_time,
                misplaced.get(row.partition, 0),
            )
            for row in found.collect()
        }
        return SourceFacts(partitions, nulls.asDict())

    def compute(self, target: Path) -> None:
        """Rows as Parquet below `target`, sorted by key: partition=<p>/*.parquet."""
        partitions = self._spec.store.partitions
        rows = self._aggregated().mapInArrow(_encoder(self._spec), _ROWS)
        laid = rows.repartitionById(partitions, "partition").sortWithinPartitions("partition", "key")
        try:
            laid.write.partitionBy("partition").parquet(str(target.absolute()))
        except PySparkException as error:
            raise _told(error) from error

    def _read(self) -> DataFrame:
        source = self._spec.source
        try:
            table = self._session.read.parquet(str(Path(source.parquet).absolute())).select(columns_of(self._spec))
            kind = table.schema[source.timestamp].dataType
        except PySparkException as error:
            raise SpecError(f"the table cannot be read: {error}", hint="see source and value in the spec") from error
        is_time = isinstance(kind, TimestampType | TimestampNTZType)
        time = (
            F.unix_millis(F.col(source.timestamp).cast("timestamp"))
            if is_time
            else F.col(source.timestamp).cast("long")
        )
        return table.withColumn("__time", time)

    def _misplaced(self, table: DataFrame) -> dict[int, int]:
        source = self._spec.source
        keys = table.where(F.col(source.key).isNotNull()).select(
            F.col(source.key).alias("key"), F.col(source.partition).cast("int").alias("partition")
        )
        grouped = keys.groupBy("key", "partition").agg(F.count("*").alias("rows"))
        wrong = grouped.mapInArrow(_misplacements(self._spec), "partition int, rows long")
        return {row.partition: row["n"] for row in wrong.groupBy("partition").agg(F.sum("rows").alias("n")).collect()}

    def _aggregated(self) -> DataFrame:
        source, table = self._spec.source, self._read()
        order = F.struct(source.partition, source.offset)
        latest = F.max_by("__time", order) if self._spec.value.timestamp == "last" else F.max("__time")
        results = [
            self._result(table, function, order).alias(f"f{at}")
            for at, function in enumerate(self._spec.value.functions)
        ]
        keyed = table.where(F.col(source.key).isNotNull()).groupBy(F.col(source.key).alias("key"))
        return keyed.agg(latest.alias("timestamp"), *results)

    def _result(self, table: DataFrame, function: Function, order: Column) -> Column:
        if function.column is None:
            return F.count("*").cast("decimal(38,0)")
        kind = table.schema[function.column].dataType
        check_type(function, isinstance(kind, IntegralType | DecimalType), kind.simpleString())
        if function.function == "sum":
            scale = kind.scale if isinstance(kind, DecimalType) else 0
            return F.sum(F.col(function.column).cast(f"decimal(38,{scale})"))
        if function.function == "last":
            return F.max_by(function.column, order)
        return F.min(function.column) if function.function == "min" else F.max(function.column)


def _told(error: PySparkException) -> JobError:
    """A refusal of the code that runs in Spark's workers (rows.py) comes back as text."""
    text = str(error)
    lines = text.splitlines()
    refused = next((line for line in lines if "RefusedError: " in line), None)
    if refused is not None:
        fact, _, hint = refused.split("RefusedError: ", 1)[1].partition("; ")
        return RefusedError(fact, hint=hint)
    return UnavailableError(
        f"Spark could not compute the rows: {lines[0][:300]}", hint="what it said is above; run it again"
    )


def _encoder(spec: BootstrapSpec) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def encode(batches: Iterator[Any]) -> Iterator[Any]:
        return (encoded(batch, spec) for batch in batches if batch.num_rows)

    return encode


def _misplacements(spec: BootstrapSpec) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Keys that are in another partition than their own, with how many rows they have there."""

    def find(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        write = serde(spec.store.key_serde).serialize
        for batch in batches:
            keys = pa.array([write("", key) for key in batch.column("key").to_pylist()], pa.binary())
            places = murmur2_partitions(binary_values(keys), spec.input.partitions)
            wrong = pa.array(places != batch.column("partition").to_numpy(zero_copy_only=False))
            yield batch.filter(wrong).select(["partition", "rows"])

    return find
