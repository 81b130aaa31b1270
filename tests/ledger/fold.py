"""What must come out of the ledger app: a plain fold of its input, written without the engine.

Called by the oracle with the input as it is in the topic. Turns the records of each partition, in order, into the sequences
that the outputs must have. Sequences are per partition, and per key where the app's partitioning is not the input's.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.ledger.workload import GRACE_MS, WINDOW_MS, LedgerRecord, limit_of

WindowKey = tuple[str, int]
"""A key and the start of its window."""


@dataclass(frozen=True)
class OutputRecord:
    """A result, decoded. `record_id` is that of the input record it follows from; None where many do."""

    key: Hashable
    value: Any
    record_id: int | None
    partition: int


Sequences = dict[Hashable, list[OutputRecord]]
"""Records that have an order among each other, by what they have in common: a partition or a key."""


def expected_outputs(records: Iterable[LedgerRecord]) -> dict[str, Sequences]:
    """By output. `tagg` is not among them: it mixes partitions, see `expected_tags`."""
    by_partition: dict[int, list[LedgerRecord]] = defaultdict(list)
    for record in records:
        by_partition[record.partition].append(record)
    outputs: dict[str, Sequences] = defaultdict(lambda: defaultdict(list))
    for partition in by_partition.values():
        _fold_partition(partition, outputs)
    return outputs


def group_of(output: str, record: OutputRecord) -> Hashable:
    """With which other records a result has an order."""
    return record.key[0] if output.startswith("window") and isinstance(record.key, tuple) else record.partition


def _fold_partition(records: list[LedgerRecord], outputs: dict[str, Sequences]) -> None:
    seen: dict[str, list[int]] = defaultdict(list)
    windows: dict[WindowKey, int] = {}
    latest = 0

    def put(output: str, record: LedgerRecord, value: Any, key: WindowKey | None = None) -> None:
        result = OutputRecord(key or record.key, value, record.record_id, record.partition)
        outputs[output][group_of(output, result)].append(result)

    for record in records:
        seen[record.key].append(record.value)
        values = seen[record.key]
        put("echo", record, record.value)
        put("joined", record, record.value + limit_of(record.key))
        put("min", record, min(values))
        put("max", record, max(values))
        put("sum", record, sum(values))
        put("count", record, len(values))
        put("avg", record, (sum(values), len(values)))
        window = record.key, record.timestamp - record.timestamp % WINDOW_MS
        windows[window] = min(record.value, windows.get(window, record.value))
        put("window-min", record, windows[window], window)
        latest = max(latest, record.timestamp)
    for (key, start), least in sorted(windows.items(), key=lambda entry: entry[0][1]):
        if start + WINDOW_MS + GRACE_MS <= latest:
            closed = OutputRecord((key, start), least, None, records[0].partition)
            outputs["window-closed"][key].append(closed)


@dataclass(frozen=True)
class TagHistory:
    """One key of `tagg`: a number of steps of one, up or down, from zero to a known end."""

    ups: int
    downs: int

    @property
    def end(self) -> int:
        return self.ups - self.downs


def expected_tags(records: Iterable[LedgerRecord]) -> Mapping[str, TagHistory]:
    """A key that is counted n times enters the counts 1 to n and leaves 1 to n - 1, one after the other."""
    counts = Counter(record.key for record in records)
    most = max(counts.values(), default=0)
    return {
        str(tag): TagHistory(sum(n >= tag for n in counts.values()), sum(n > tag for n in counts.values()))
        for tag in range(1, most + 1)
    }
