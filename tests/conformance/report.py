"""Prints results for people: progress as they come in, then failures, deviations, table and totals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any, TextIO

from tests.conformance.results import Result, Verdict
from tests.conformance.scenario import Level
from tests.conformance.settings import Execution

_MARKS = {Verdict.PASSED: ".", Verdict.FAILED: "F", Verdict.DEVIATING: "d"}
_SHOWN_DIFFERENCES = 3
_SHOWN_WIDTH = 300


def collect(results: Iterable[Result], out: TextIO) -> list[Result]:
    """Take results as they come and show one mark for each, one line per family."""
    collected: list[Result] = []
    family = None
    for result in results:
        if result.family != family:
            out.write(f"{'' if family is None else chr(10)}{result.family:<12} ")
            family = result.family
        out.write(_MARKS[result.verdict])
        out.flush()
        collected.append(result)
    out.write("\n")
    return collected


def write(results: Sequence[Result], out: TextIO, *, verbose: bool) -> None:
    """Everything there is to say; the last line is the number of scenarios that passed and failed."""
    for result in results:
        if result.verdict is Verdict.FAILED:
            out.writelines(f"{line}\n" for line in _failure(result, verbose=verbose))
    for result in results:
        if result.verdict is Verdict.DEVIATING:
            out.write(f"\ndeviates on purpose: {result.name}\n  {result.note}\n")
    out.writelines(f"{line}\n" for line in _table(results))
    out.writelines(f"{line}\n" for line in _totals(results))


def _failure(result: Result, *, verbose: bool) -> Iterator[str]:
    failed = [level.value for level, differences in result.levels.items() if differences]
    yield f"\nFAILED {result.name}{' at ' + ', '.join(failed) if failed else ''}"
    if result.note:
        yield f"  {result.note}"
    for level, differences in result.levels.items():
        shown = differences if verbose else differences[:_SHOWN_DIFFERENCES]
        for difference in shown:
            yield f"  {level.value}, {difference.where}"
            yield f"    expected {_value(difference.expected, verbose=verbose)}"
            yield f"    got      {_value(difference.got, verbose=verbose)}"
        if len(differences) > len(shown):
            yield f"  {level.value}: {len(differences) - len(shown)} more, --verbose shows them"
    if verbose and result.trace:
        yield result.trace


def _value(value: Any, *, verbose: bool) -> str:
    shown = value if isinstance(value, str) else repr(value)
    return shown if verbose or len(shown) <= _SHOWN_WIDTH else f"{shown[:_SHOWN_WIDTH]}..."


def _table(results: Sequence[Result]) -> Iterator[str]:
    """Family by execution and level: passed of compared; then scenarios by verdict."""
    verdicts = [verdict.value for verdict in Verdict]
    levels = [level.value for level in Level]
    heads = ["family", *(levels * len(Execution)), *verdicts]
    rows = [_row(family, results) for family in dict.fromkeys(result.family for result in results)]
    rows.append(_row(None, results))
    widths = [max(len(row[column]) for row in [heads, *rows]) for column in range(len(heads))]
    yield ""
    block = sum(widths[1 : 1 + len(levels)]) + 2 * len(levels)
    yield (" " * widths[0] + "".join(f"  {way.value} ".ljust(block, "-") for way in Execution)).rstrip()
    for row in [heads, *rows]:
        yield "  ".join(
            cell.ljust(width) if index == 0 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )


def _row(family: str | None, results: Sequence[Result]) -> list[str]:
    chosen = [result for result in results if family in (None, result.family)]
    verdicts = Counter(result.verdict for result in chosen)
    cells = ["all" if family is None else family]
    for way, level in product(Execution, Level):
        found = [result.executions.get(way, {}) for result in chosen]
        compared = [levels[level] for levels in found if level in levels]
        cells.append(f"{sum(not differences for differences in compared)}/{len(compared)}" if compared else "-")
    return [*cells, *(str(verdicts[verdict]) if verdicts[verdict] else "-" for verdict in Verdict)]


def _totals(results: Sequence[Result]) -> Iterator[str]:
    compared = [
        differences for result in results for levels in result.executions.values() for differences in levels.values()
    ]
    equal = sum(not differences for differences in compared)
    texts = [result.has_same_text for result in results if result.has_same_text is not None]
    verdicts = Counter(result.verdict for result in results)
    yield ""
    yield f"checks (scenario x execution x level): {equal} equal, {len(compared) - equal} different"
    yield f"description byte for byte, for information: {sum(texts)} of {len(texts)}"
    yield f"scenarios: {verdicts[Verdict.DEVIATING]} deviating on purpose"
    yield f"{verdicts[Verdict.PASSED]} passed, {verdicts[Verdict.FAILED]} failed"
