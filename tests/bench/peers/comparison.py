"""Rows of results, compared: medians of the runs that count, and the engine's ratio to a peer, round by round.

A machine gets faster and slower, so a ratio is made of two runs of the same round; of several rounds, the median counts.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from tests.bench.peers.workloads import WORKLOADS

OURS = "streamfleet"
LONG = " long"
IN_STEADY = ("cpu_us", "rate", "broker_us")


class Comparison:
    """Of all rows; a workload's long form is one of its own."""

    def __init__(self, rows: Sequence[dict[str, Any]]) -> None:
        self.left_out = [row for row in rows if not _counts(row)]
        self._rows = [row for row in rows if _counts(row)]
        present = {_name(row) for row in self._rows}
        self.workloads = [name + form for form in ("", LONG) for name in WORKLOADS if name + form in present]

    def is_long(self, name: str) -> bool:
        return name.endswith(LONG)

    def runs(self, name: str, runner: str) -> list[dict[str, Any]]:
        return [row for row in self._rows if _name(row) == name and row["runner"] == runner]

    def runners(self, name: str) -> list[str]:
        return list(dict.fromkeys(row["runner"] for row in self._rows if _name(row) == name))

    def values(self, name: str, runner: str, field: str) -> list[float]:
        found = (_value(row, field) for row in self.runs(name, runner))
        return sorted(value for value in found if value is not None)

    def median(self, name: str, runner: str, field: str) -> float | None:
        values = self.values(name, runner, field)
        return statistics.median(values) if values else None

    def ratio(self, name: str, runner: str, field: str) -> float | None:
        """The engine's figure to the runner's, as a median over rounds that both ran in."""
        theirs = {row["round"]: _value(row, field) for row in self.runs(name, runner)}
        ratios = []
        for row in self.runs(name, OURS):
            own, other = _value(row, field), theirs.get(row["round"])
            if own is not None and other:
                ratios.append(own / other)
        return statistics.median(ratios) if ratios else None


def _counts(row: dict[str, Any]) -> bool:
    return bool(row.get("steady")) and not row.get("wrong") and not row.get("failed")


def _name(row: dict[str, Any]) -> str:
    return row["workload"] + (LONG if row["long"] else "")


def _value(row: dict[str, Any], field: str) -> float | None:
    found = row["steady"].get(field) if field in IN_STEADY else row.get(field)
    return None if found is None else float(found)
