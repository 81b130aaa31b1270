"""What the table holds, offset by offset, and where the app goes on: pure judgement over facts that either engine has counted.

A table that lacks a record, has one twice, or has one in another partition than its key's gives a state that no app would have. It
is refused with the first such partition named.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from streamfleet_jobs.bootstrap.spec import BootstrapSpec
from streamfleet_jobs.errors import RefusedError


class PartitionFacts(msgspec.Struct, frozen=True):
    """What the table has of one partition of the input topic."""

    rows: int
    distinct_offsets: int
    first: int
    last: int
    stream_time: int
    misplaced: int = 0
    """Rows whose key belongs into another partition."""


class SourceFacts(msgspec.Struct, frozen=True):
    partitions: dict[int, PartitionFacts]
    nulls: dict[str, int]
    """By column; those of the key are records without one, which the app leaves out too."""


def check_source(spec: BootstrapSpec, facts: SourceFacts) -> None:
    for column, count in facts.nulls.items():
        if count and column != spec.source.key:
            raise RefusedError(
                f"column {column} is null in {count} rows", hint="fill it, or leave such rows out where the app does"
            )
    unknown = sorted(set(facts.partitions) - set(range(spec.input.partitions)))
    if unknown:
        raise RefusedError(
            f"the table has rows of partition {unknown[0]}, but topic {spec.input.topic} has {spec.input.partitions}",
            hint="a bootstrap needs the table of a topic with the same partitions",
        )
    for partition, found in sorted(facts.partitions.items()):
        _check_partition(spec, partition, found)


def _check_partition(spec: BootstrapSpec, partition: int, found: PartitionFacts) -> None:
    first = spec.source.first_offsets.get(partition, 0)
    where = f"partition {partition}"
    if found.first != first:
        raise RefusedError(
            f"{where} of the table begins with offset {found.first}, not {first}",
            hint="land what is missing, or name where the table begins in source.first_offsets",
        )
    if found.rows != found.distinct_offsets:
        raise RefusedError(
            f"{where} of the table has {found.rows - found.distinct_offsets} rows twice", hint="remove the duplicates"
        )
    holes = found.last - found.first + 1 - found.rows
    if holes:
        raise RefusedError(
            f"{where} of the table lacks {holes} offsets between {found.first} and {found.last}",
            hint="land them; a topic that was compacted or written in transactions has such holes and cannot be told apart",
        )
    if found.misplaced and spec.input.through is None:
        raise RefusedError(
            f"{where} of the table has {found.misplaced} rows whose key belongs into another one (murmur2)",
            hint="their state would be in another task than their records: use the producers' partitioner, or a repartition",
        )


def next_offsets(spec: BootstrapSpec, facts: SourceFacts) -> dict[int, int]:
    """Where the app goes on, for every partition of the input."""
    return {
        partition: facts.partitions[partition].last + 1
        if partition in facts.partitions
        else spec.source.first_offsets.get(partition, 0)
        for partition in range(spec.input.partitions)
    }


def as_detail(facts: SourceFacts) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(facts, str_keys=True)
    return found


def from_detail(detail: Mapping[str, Any]) -> SourceFacts:
    return msgspec.convert(detail, SourceFacts, strict=False)
