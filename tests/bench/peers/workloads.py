"""What is run: the workloads, the input family and size of each, and what a correct result is."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Check = Literal["copies", "priced", "counts", "windows", "sessions", "joined"]
Family = Literal["orders", "uniform", "lines", "pairs", "keys"]
Rows = Iterable[tuple[bytes | None, bytes | None]]

SHARES: dict[Family, float] = {"orders": 1.0, "uniform": 1.0, "lines": 0.2, "pairs": 0.2, "keys": 0.5}
"""How much of a runner's records an input has: a line is five words, and a pair writes to two windows."""
MOST_KEYS = 1000
"""Thousands of keys to restore, however long the run is."""


@dataclass(frozen=True)
class Workload:
    """`code` is what the runner is told; several workloads differ only by their input."""

    code: str
    family: Family
    check: Check
    title: str
    outputs: str | None = None
    """Which field of the input's facts says how many results there are; None: that is open (caches, transactions)."""

    def thousands(self, of_runner: int) -> int:
        size = max(1, round(of_runner * SHARES[self.family]))
        return min(size, MOST_KEYS) if self.family == "keys" else size


WORKLOADS = {
    "W0": Workload("W0", "orders", "copies", "raw copy", "records"),
    "W1": Workload("W1", "orders", "priced", "JSON, filter, map, JSON", "priced"),
    "W2": Workload("W2", "orders", "counts", "count, every update", "records"),
    "W2u": Workload("W2", "uniform", "counts", "W2, a million uniform keys", "records"),
    "W3": Workload("W3", "orders", "counts", "count, default cache"),
    "W4": Workload("W4", "orders", "windows", "one-minute window, every update", "records"),
    "W4c": Workload("W4c", "orders", "windows", "one-minute window, default cache"),
    "W5": Workload("W5", "lines", "counts", "word count, per line of five"),
    "W6": Workload("W6", "orders", "joined", "stream-table join", "records"),
    "W7": Workload("W7", "orders", "counts", "W2, exactly once"),
    "Ws": Workload("Ws", "orders", "sessions", "session windows, every update"),
    "Wj": Workload("Wj", "pairs", "joined", "stream-stream join, per pair", "records"),
    "R": Workload("W2", "keys", "counts", "restore, per key"),
}


def what_is_wrong(check: Check, rows: Rows, facts: dict[str, int], wanted_rows: int | None) -> str | None:
    """A sentence, or None when the results are right: how many there are, and what they add up to."""
    listed = list(rows)
    if wanted_rows is not None and len(listed) != wanted_rows:
        return f"{len(listed)} results, not {wanted_rows}"
    if check == "copies":
        return None
    if check == "priced":
        cents = sum(json.loads(value or b"")["cents"] for _, value in listed)
        return None if cents == facts["cents"] else f"the results add up to {cents} cents, not {facts['cents']}"
    if check == "joined":
        return _what_is_wrong_with_joins(listed, facts)
    counts = {"counts": _counted, "windows": _in_windows, "sessions": _in_sessions}[check](listed)
    wanted = facts.get("words", facts["records"])
    return None if counts == wanted else f"the counts add up to {counts}, not {wanted}"


def _what_is_wrong_with_joins(rows: Rows, facts: dict[str, int]) -> str | None:
    """Every order once, and each with its own partner: a customer's name or an item ends with the customer's number."""
    ids, strangers = set(), 0
    for _, value in rows:
        result = json.loads(value or b"{}")
        ids.add(result["id"])
        strangers += result["customer"][1:] != result["name"].rpartition(" ")[2].rpartition("-")[2]
    if strangers:
        return f"{strangers} results with another's partner"
    return None if len(ids) == facts["records"] else f"{len(ids)} orders among the results, not {facts['records']}"


def _counted(rows: Rows) -> int:
    return sum({key: int(value or b"0") for key, value in rows}.values())


def _in_windows(rows: Rows) -> int:
    last: dict[tuple[bytes | None, int], int] = {}
    for key, value in rows:
        window = json.loads(value or b"{}")
        last[key, window["start"]] = window["count"]
    return sum(last.values())


def _in_sessions(rows: Rows) -> int:
    """A session that grew was given with fewer counts before: of all that overlap, the fullest counts."""
    of_key: dict[bytes | None, list[tuple[int, int, int]]] = defaultdict(list)
    for key, value in rows:
        session = json.loads(value or b"{}")
        of_key[key].append((session["start"], session["end"], session["count"]))
    total = 0
    for sessions in of_key.values():
        end, fullest = -1, 0
        for start, its_end, count in sorted(sessions):
            if start > end:
                total, fullest = total + fullest, 0
            end, fullest = max(end, its_end), max(fullest, count)
        total += fullest
    return total
