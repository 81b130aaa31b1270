"""Aggregation with Arrow in this process: no Java, and the oracle of the Spark engine. Called by job.py.

The columns that are needed are read into memory: some 100 bytes per row of the table.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from streamfleet_jobs.bootstrap.rows import ROWS, encoded, serde
from streamfleet_jobs.bootstrap.source import PartitionFacts, SourceFacts
from streamfleet_jobs.bootstrap.spec import BootstrapSpec, Function
from streamfleet_jobs.columns.binary import binary_values
from streamfleet_jobs.columns.event_times import milliseconds
from streamfleet_jobs.columns.partitioners import murmur2_partitions
from streamfleet_jobs.errors import RefusedError, SpecError

BATCH_ROWS = 50_000
_WIDE = pa.decimal128(38, 0)


def columns_of(spec: BootstrapSpec) -> list[str]:
    source = spec.source
    own = [source.key, source.partition, source.offset, source.timestamp]
    return list(dict.fromkeys(own + [f.column for f in spec.value.functions if f.column is not None]))


def check_type(function: Function, is_exact: bool, shown: str) -> None:
    """Shared by both engines."""
    if function.function in ("sum", "min", "max") and not is_exact:
        raise RefusedError(
            f"{function.function} of column {function.column}, which is {shown}, depends on the order of the work",
            hint="use integers or decimals (cents instead of euros)",
        )


class LocalEngine:
    name = "local"

    def __init__(self, spec: BootstrapSpec) -> None:
        self._spec = spec
        self._table: Any = None

    def facts(self) -> SourceFacts:
        spec, table = self._spec, self._read()
        nulls = {name: table.column(name).null_count for name in columns_of(spec)}
        grouped = table.group_by(spec.source.partition).aggregate(
            [
                ([], "count_all"),
                (spec.source.offset, "count_distinct"),
                (spec.source.offset, "min"),
                (spec.source.offset, "max"),
                ("__time", "max"),
            ]
        )
        misplaced = self._misplaced(table)
        offset = spec.source.offset
        rows = grouped.to_pylist()
        return SourceFacts(
            {
                row[spec.source.partition]: PartitionFacts(
                    row["count_all"],
                    row[f"{offset}_count_distinct"],
                    row[f"{offset}_min"],
                    row[f"{offset}_max"],
                    row["__time_max"],
                    misplaced.get(row[spec.source.partition], 0),
                )
                for row in rows
                if row[spec.source.partition] is not None
            },
            nulls,
        )

    def compute(self, target: Path) -> None:
        """Rows as Parquet below `target`, sorted by key: partition=<p>/rows.parquet."""
        rows = self._rows(self._aggregated())
        for partition in range(self._spec.store.partitions):
            chosen = rows.filter(pc.equal(rows.column("partition"), partition)).sort_by("key")
            if chosen.num_rows:
                directory = target / f"partition={partition}"
                directory.mkdir(parents=True)
                pq.write_table(chosen.drop_columns("partition"), directory / "rows.parquet")

    def _read(self) -> Any:
        if self._table is None:
            try:
                table = pq.read_table(self._spec.source.parquet, columns=columns_of(self._spec))
            except (OSError, pa.ArrowException, KeyError) as error:
                raise SpecError(f"the table cannot be read: {error}", hint="see source in the spec") from error
            missing = sorted(set(columns_of(self._spec)) - set(table.column_names))
            if missing:
                raise SpecError(f"the table has no column {missing[0]}", hint="see source and value in the spec")
            time = table.column(self._spec.source.timestamp)
            self._table = table.append_column("__time", milliseconds(time))
        return self._table

    def _misplaced(self, table: Any) -> dict[int, int]:
        kept = table.filter(pc.is_valid(table.column(self._spec.source.key)))
        keys = pc.unique(kept.column(self._spec.source.key))
        write = serde(self._spec.store.key_serde).serialize
        raw = pa.array([write("", key) for key in keys.to_pylist()], pa.binary())
        places = murmur2_partitions(binary_values(raw), self._spec.input.partitions)
        at = pc.index_in(kept.column(self._spec.source.key), value_set=keys).to_numpy()
        found = kept.column(self._spec.source.partition).to_numpy()
        wrong, counts = np.unique(found[places[at] != found], return_counts=True)
        return dict(zip(wrong.tolist(), counts.tolist(), strict=True))

    def _aggregated(self) -> Any:
        spec, table = self._spec, self._read()
        table = table.filter(pc.is_valid(table.column(spec.source.key)))
        table = table.sort_by([(spec.source.partition, "ascending"), (spec.source.offset, "ascending")])
        arrays = {"key": table.column(spec.source.key), "timestamp": table.column("__time")}
        asked: list[Any] = [("timestamp", spec.value.timestamp)]
        for at, function in enumerate(spec.value.functions):
            arrays[f"f{at}"], kind = self._input(table, function)
            asked.append((f"f{at}", kind))
        result = pa.table(arrays).group_by("key", use_threads=False).aggregate(asked)
        names = {f"{column}_{kind}": column for column, kind in asked}
        return result.rename_columns([names.get(name, name) for name in result.column_names])

    def _input(self, table: Any, function: Function) -> tuple[Any, str]:
        if function.column is None:
            return pa.chunked_array([pa.nulls(table.num_rows, pa.int8()).fill_null(1)]).cast(_WIDE), "sum"
        column = table.column(function.column)
        is_integer, is_decimal = pa.types.is_integer(column.type), pa.types.is_decimal(column.type)
        check_type(function, is_integer or is_decimal, str(column.type))
        if function.function == "sum":
            wide = _WIDE if is_integer else pa.decimal128(38, column.type.scale)
            return column.cast(wide), "sum"
        return column, function.function

    def _rows(self, aggregated: Any) -> Any:
        batches = [
            encoded(pa.RecordBatch.from_arrays(batch.columns, schema=batch.schema), self._spec)
            for batch in aggregated.combine_chunks().to_batches(max_chunksize=BATCH_ROWS)
        ]
        return pa.Table.from_batches(batches, schema=ROWS)
