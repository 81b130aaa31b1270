"""What must come out of the ledger app: a plain fold of its input, written without the engine.

Called by the oracle with the input as it is in the topic. Turns the records of each partition, in order, into the sequences
that the outputs must have. Sequences are per partition, and per key where the app's partitioning is not the input's.
"""

from __future__ import annotations

import operator
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.ledger.workload import (
    GRACE_MS,
    PAIR_REACH_MS,
    WINDOW_MS,
    LedgerRecord,
    accounts_of,
    is_left,
    is_right,
    limit_of,
)

WindowKey = tuple[str, int]
"""A key and the start of its window."""
PairKey = tuple[str, int | None, int | None]
"""A key and two of its integers; None: the other has no partner."""


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
    """By output. `tagg` is not among them: it mixes partitions, see `expected_tags`. Nor is `owned`: see `expected_owned`."""
    by_partition: dict[int, list[LedgerRecord]] = defaultdict(list)
    for record in records:
        by_partition[record.partition].append(record)
    outputs: dict[str, Sequences] = defaultdict(lambda: defaultdict(list))
    for partition in by_partition.values():
        _fold_partition(partition, outputs)
        _pair_partition(partition, outputs["paired"])
    return outputs


def group_of(output: str, record: OutputRecord) -> Hashable:
    """With which other records a result has an order."""
    if not isinstance(record.key, tuple):
        return record.partition
    if output == "paired" and None not in record.key:
        return (
            record.partition
        )  # given when the second of the two comes; one without partner is, when its time has passed
    return record.key[0]


def _fold_partition(records: list[LedgerRecord], outputs: dict[str, Sequences]) -> None:
    seen: dict[str, list[int]] = defaultdict(list)
    windows: dict[WindowKey, int] = {}
    sums: dict[WindowKey, int] = defaultdict(int)
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
        sums[window] += record.value
        latest = max(latest, record.timestamp)
    for (key, start), least in sorted(windows.items(), key=lambda entry: entry[0][1]):
        if start + WINDOW_MS + GRACE_MS <= latest:
            for output, value in (("window-closed", least), ("window-final", sums[key, start])):
                outputs[output][key].append(OutputRecord((key, start), value, None, records[0].partition))


def _pair_partition(records: list[LedgerRecord], paired: Sequences) -> None:
    """Every record of one side with all of the other side that came before it and are near; then those that had none."""
    lefts, rights = ([each for each in records if belongs(each.value)] for belongs in (is_left, is_right))
    latest = max((each.timestamp for each in lefts + rights), default=0)
    place = {record.record_id: number for number, record in enumerate(records)}
    alone = {each.record_id: each for each in lefts + rights}
    found = []
    for left in lefts:
        for right in rights:
            if left.key == right.key and abs(left.timestamp - right.timestamp) <= PAIR_REACH_MS:
                earlier, later = sorted((left, right), key=lambda each: place[each.record_id])
                found.append((place[later.record_id], earlier.timestamp, left, right, later))
                alone.pop(left.record_id, None)
                alone.pop(right.record_id, None)
    for _, _, left, right, later in sorted(found, key=lambda one: one[:2]):
        _put_pair(paired, (left.key, left.value, right.value), later.record_id, left.partition)
    for each in sorted(alone.values(), key=lambda one: one.timestamp):
        if each.timestamp + PAIR_REACH_MS + GRACE_MS < latest:
            sides = (each.value, None) if is_left(each.value) else (None, each.value)
            _put_pair(paired, (each.key, *sides), None, each.partition)


def _put_pair(paired: Sequences, pair: PairKey, record_id: int | None, partition: int) -> None:
    result = OutputRecord(pair, pair[1:], record_id, partition)
    paired[group_of("paired", result)].append(result)


def least_kept(records: Iterable[LedgerRecord]) -> Mapping[str, Mapping[Hashable, Any]]:
    """What stores must have in the end, by store and key; sums and counts may be higher where records were processed again."""
    kept: dict[str, dict[Hashable, Any]] = defaultdict(dict)
    for record in records:
        key, window = record.key, (record.key, record.timestamp - record.timestamp % WINDOW_MS)
        for store, value, combine in (
            ("min", record.value, min),
            ("max", record.value, max),
            ("sum", record.value, operator.add),
            ("count", 1, operator.add),
        ):
            kept[store][key] = combine(kept[store][key], value) if key in kept[store] else value
        kept["window-min"][window] = min(record.value, kept["window-min"].get(window, record.value))
        kept["window-sum"][window] = record.value + kept["window-sum"].get(window, 0)
    return kept


def expected_owned(records: Iterable[LedgerRecord]) -> Mapping[str, int]:
    """By account: up to which count it is told those of its key, one after the other."""
    counts = Counter(record.key for record in records)
    return {account: count for key, count in counts.items() for account in accounts_of(key)}


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
