"""Compares what came out with what must: finds anomalies and gives them names. Pure; called by the checker and by its own tests.

Sequences are compared record by record and in full. Sets would not do: a duplicate vanishes in them, and so does order.

    lost           a result that must be there is not
    duplicate      a result is there more often than it must be
    phantom        a result of no input record
    wrong value    the result of a record is there, but is another
    out of order   all results are right, in another order
    closed form    the last result of a key is not what its closed form says
    old state      a changelog ends with less than what was processed
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.ledger.app import NEVER_COUNTED
from tests.ledger.fold import (
    OutputRecord,
    Sequences,
    TagHistory,
    expected_outputs,
    expected_owned,
    expected_tags,
    group_of,
    least_kept,
)
from tests.ledger.workload import CLOSED_ACCOUNT, ClosedForm, LedgerRecord, accounts_of, closed_form, has_moved

SHOWN = 5
CLOSED_FORMS = ("min", "max", "sum", "count", "avg")
REPEATABLE_STORES = ("min", "max", "window-min")
"""What they hold does not change when a record is processed again."""
PER_RECORD = ("echo", "joined", *CLOSED_FORMS, "window-min")
"""Outputs with one result for each input record."""


@dataclass(frozen=True)
class Anomaly:
    kind: str
    where: str
    detail: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.where}: {self.detail}"


def check_exactly_once(
    inputs: Sequence[LedgerRecord],
    outputs: Mapping[str, Sequence[OutputRecord]],
    keys: Iterable[str],
    *,
    accounts_first: bool = True,
) -> list[Anomaly]:
    """`outputs` has the records of each output topic, in order per partition. `accounts_first`: all accounts were known when the
    first record came; if not, an account is told its key's counts from some count on.
    """
    anomalies: list[Anomaly] = []
    expected = expected_outputs(inputs)
    for output, sequences in expected.items():
        anomalies += compare_sequences(output, sequences, _grouped(output, outputs[output]))
    anomalies += check_tags(expected_tags(inputs), outputs["tagg"])
    anomalies += check_owned(expected_owned(inputs), outputs["owned"], from_one=accounts_first)
    return anomalies + check_closed_forms(outputs, keys)


def check_at_least_once(
    inputs: Sequence[LedgerRecord], outputs: Mapping[str, Sequence[OutputRecord]], keys: Iterable[str]
) -> list[Anomaly]:
    """Nothing lost; results that repetition does not change are right. What may be repeated: stints.py.

    Pairs, and what has no partner, are all there, and there is nothing else. The last sum of a window is the fold's, or more. Every
    account has been told of every record of its key.
    """
    anomalies = _check_repeatable_pairs(inputs, outputs["paired"]) + _check_final_sums(inputs, outputs["window-final"])
    anomalies += _check_told(inputs, outputs["owned"])
    all_ids = {record.record_id for record in inputs}
    for output in PER_RECORD:
        missing = sorted(all_ids - {record.record_id for record in outputs[output]})
        if missing:
            anomalies.append(Anomaly("lost", output, f"{len(missing)} records, ids {missing[:SHOWN]}"))
    repeatable = {output: outputs[output] for output in ("min", "max")}
    return anomalies + check_closed_forms(repeatable, keys)


def check_kept(inputs: Iterable[LedgerRecord], kept: Mapping[str, Mapping[Hashable, Any]]) -> list[Anomaly]:
    """At least once: what the changelogs have of each store in the end, by key. Nothing is missing in it that was processed: old
    state that was written behind newer would be what the next owner begins with.
    """
    anomalies = []
    for store, least in least_kept(inputs).items():
        is_exact = store in REPEATABLE_STORES
        for key, wanted in least.items():
            value = kept[store].get(key)
            if value is None or (value != wanted if is_exact else value < wanted):
                anomalies.append(Anomaly("old state", f"{store}[{key}]", f"is {value}, must be {wanted}"))
    return anomalies


def compare_sequences(output: str, expected: Sequences, found: Sequences) -> list[Anomaly]:
    anomalies: list[Anomaly] = []
    for group in expected.keys() | found.keys():
        anomalies += _compare(f"{output}[{group}]", expected.get(group, []), found.get(group, []))
    return sorted(anomalies, key=str)


def _compare(where: str, expected: list[OutputRecord], found: list[OutputRecord]) -> list[Anomaly]:
    if expected == found:
        return []
    wanted, there = Counter(map(_identity, expected)), Counter(map(_identity, found))
    anomalies = []
    if missing := list((wanted - there).elements()):
        anomalies.append(Anomaly("lost", where, f"{len(missing)} of {len(expected)}: {missing[:SHOWN]}"))
    surplus = list((there - wanted).elements())
    if repeated := [one for one in surplus if one in wanted]:
        anomalies.append(Anomaly("duplicate", where, f"{len(repeated)}: {repeated[:SHOWN]}"))
    if unknown := [one for one in surplus if one not in wanted]:
        anomalies.append(Anomaly("phantom", where, f"{len(unknown)}: {unknown[:SHOWN]}"))
    if not anomalies:
        at, (wants, has) = next(
            (n, pair) for n, pair in enumerate(zip(expected, found, strict=True)) if pair[0] != pair[1]
        )
        kind = "wrong value" if _identity(wants) == _identity(has) else "out of order"
        anomalies.append(Anomaly(kind, where, f"at {at}: {has}, not {wants}"))
    return anomalies


def _identity(record: OutputRecord) -> tuple[Hashable, int | None]:
    return record.key, record.record_id


def _grouped(output: str, records: Iterable[OutputRecord]) -> Sequences:
    groups: Sequences = {}
    for record in records:
        groups.setdefault(group_of(output, record), []).append(record)
    return groups


def check_tags(expected: Mapping[str, TagHistory], found: Iterable[OutputRecord]) -> list[Anomaly]:
    """Which partition comes first is not known, but every step is one up or one down, and their number is."""
    histories: dict[Hashable, list[Any]] = {}
    for record in found:
        histories.setdefault(record.key, []).append(record.value)
    anomalies = _check_never_counted(expected, histories.pop(NEVER_COUNTED, []))
    # A step down without the steps up before it leaves no count at all.
    without = [tag for tag, values in histories.items() if None in values]
    anomalies += [Anomaly("wrong value", f"tagg[{tag}]", f"no count: {histories.pop(tag)[:40]}") for tag in without]
    for tag in expected.keys() | histories.keys():
        values, wanted = histories.get(tag, []), expected.get(str(tag), TagHistory(0, 0))
        steps = [after - before for before, after in zip([0, *values], values, strict=False)]
        ups, downs = steps.count(1), steps.count(-1)
        if ups < wanted.ups or downs < wanted.downs:
            anomalies.append(Anomaly("lost", f"tagg[{tag}]", f"{ups} up, {downs} down, must be {wanted}"))
        if len(steps) > wanted.ups + wanted.downs or ups + downs < len(steps):
            anomalies.append(Anomaly("duplicate", f"tagg[{tag}]", f"steps {steps[:40]}, must be {wanted}"))
    return sorted(anomalies, key=str)


def _check_never_counted(expected: Mapping[str, TagHistory], values: list[Any]) -> list[Anomaly]:
    """Every key leaves it once, and nothing is counted there."""
    where, keys = f"tagg[{NEVER_COUNTED}]", expected["1"].ups if expected else 0
    anomalies = []
    if counted := [value for value in values if value is not None]:
        anomalies.append(Anomaly("wrong value", where, f"a count: {counted[:SHOWN]}"))
    if len(values) != keys:
        kind = "lost" if len(values) < keys else "duplicate"
        anomalies.append(Anomaly(kind, where, f"left {len(values)} times, must be {keys}"))
    return anomalies


def check_owned(expected: Mapping[str, int], found: Iterable[OutputRecord], *, from_one: bool) -> list[Anomaly]:
    """Every account is told the counts of its key one after the other, each once. One that came to its key from another is told
    first that there is none yet; one that was closed is told nothing else.
    """
    histories: dict[Hashable, list[Any]] = {}
    for record in found:
        histories.setdefault(record.key, []).append(record.value)
    anomalies = []
    for account in {*expected, *histories, CLOSED_ACCOUNT}:
        values, last = histories.get(account, []), expected.get(str(account), 0)
        wanted: list[int | None] = [*([None] if has_moved(str(account)) else []), *range(1, last + 1)]
        if not from_one and has_moved(str(account)):
            values, wanted = values[-1:], wanted[-1:]  # who knows what the other key told it
        elif not from_one and values:
            wanted = wanted[values[0] - 1 :]
        if values != wanted:
            anomalies.append(Anomaly(_difference(values, wanted), f"owned[{account}]", _beside(values, wanted)))
    return sorted(anomalies, key=str)


def _difference(values: list[int | None], wanted: list[int | None]) -> str:
    there, must = Counter(values), Counter(wanted)
    if must - there:
        return "lost"
    if any(value in must for value in there - must):
        return "duplicate"
    return "phantom" if there - must else "out of order"


def _beside(values: list[int | None], wanted: list[int | None]) -> str:
    at = next((n for n, pair in enumerate(zip(values, wanted, strict=False)) if pair[0] != pair[1]), len(values))
    before = values[max(0, at - SHOWN) : at]
    return f"told {values[at : at + SHOWN]} after {before}, must be {wanted[at : at + SHOWN]}, in all {len(wanted)}"


def _check_repeatable_pairs(inputs: Sequence[LedgerRecord], found: Iterable[OutputRecord]) -> list[Anomaly]:
    wanted = {record.key for sequence in expected_outputs(inputs)["paired"].values() for record in sequence}
    there = {record.key for record in found}
    return [
        Anomaly(kind, "paired", f"{len(pairs)}: {sorted(pairs, key=str)[:SHOWN]}")
        for kind, pairs in (("lost", wanted - there), ("phantom", there - wanted))
        if pairs
    ]


def _check_final_sums(inputs: Sequence[LedgerRecord], found: Iterable[OutputRecord]) -> list[Anomaly]:
    last = {record.key: record.value for record in found}
    wanted = {record.key: record for records in expected_outputs(inputs)["window-final"].values() for record in records}
    anomalies = [Anomaly("phantom", "window-final", f"{window}") for window in last.keys() - wanted.keys()]
    for window, record in wanted.items():
        if window not in last:
            anomalies.append(Anomaly("lost", "window-final", f"{window}"))
        elif last[window] < record.value:
            anomalies.append(Anomaly("wrong value", "window-final", f"{window}: {last[window]} < {record.value}"))
    return sorted(anomalies, key=str)


def _check_told(inputs: Iterable[LedgerRecord], found: Iterable[OutputRecord]) -> list[Anomaly]:
    told = {(record.key, record.record_id) for record in found}
    must = {(account, record.record_id) for record in inputs for account in accounts_of(record.key)}
    missing = sorted(must - told, key=str)
    return [Anomaly("lost", "owned", f"{len(missing)}: {missing[:SHOWN]}")] if missing else []


def check_closed_forms(outputs: Mapping[str, Sequence[OutputRecord]], keys: Iterable[str]) -> list[Anomaly]:
    """Independent of the fold: the last result of every key."""
    anomalies = []
    names = [name for name in CLOSED_FORMS if name in outputs]
    last = {name: {record.key: record.value for record in outputs[name]} for name in names}
    for key in keys:
        form = closed_form(key)
        for name in names:
            value, wanted = last[name].get(key), _closed(name, form)
            if value != wanted:
                anomalies.append(Anomaly("closed form", f"{name} of {key}", f"is {value}, must be {wanted}"))
    return anomalies


def _closed(name: str, form: ClosedForm) -> object:
    average = form.total, form.count
    return {"min": form.minimum, "max": form.maximum, "sum": form.total, "count": form.count, "avg": average}[name]
