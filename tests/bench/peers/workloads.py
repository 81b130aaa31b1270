"""What is run: the workloads, the input family and size of each, and what a correct result is."""

from __future__ import annotations

import json
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

Check = Literal["copies", "priced", "counts", "windows", "sessions", "joined"]
Family = Literal["orders", "uniform", "lines", "pairs", "keys"]
Row = tuple[bytes | None, bytes | None]
Rows = Iterable[Row]

SHARES: dict[Family, float] = {"orders": 1.0, "uniform": 1.0, "lines": 0.2, "pairs": 0.2, "keys": 0.5}
"""How much of a runner's records an input has: a line is five words, and a pair writes to two windows."""
MOST_KEYS = 1000
"""Thousands of keys to restore, however long the run is."""
LONG = {
    "W1": 8000,
    "W2": 8000,
    "W2u": 4000,
    "W3": 8000,
    "W4": 4000,
    "W4c": 4000,
    "W5": 6000,
    "W6": 4000,
    "W7": 4000,
    "Ws": 3000,
    "Wj": 4000,
}
"""What `--long` runs unless it is told, and thousands of records of each, for about a minute of ours; others that are named have
LONG_ELSE.
"""
LONG_ELSE = 4000


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
    """A sentence, or None when the results are right: how many there are (where that is fixed), and what they add up to."""
    number = 0

    def passing() -> Iterator[Row]:
        nonlocal number
        for row in rows:  # a long run has more of them than memory should hold
            number += 1
            yield row

    try:
        found = CHECKS[check](passing(), facts)
    except (ValueError, KeyError, TypeError) as error:
        return f"result {number} cannot be read: {error!r}"
    return found if wanted_rows is None or number == wanted_rows else f"{number} results, not {wanted_rows}"


def checksum(key: bytes | None, value: bytes | None) -> int:
    """Of one record. Those of a topic are added up, so that their order does not matter."""
    return zlib.crc32(value or b"", zlib.crc32(key or b""))


def _copies(rows: Rows, facts: dict[str, int]) -> str | None:
    found = sum(checksum(key, value) for key, value in rows)
    return None if found == facts["checksum"] else "the copies are not what was there: another checksum"


def _prices(rows: Rows, facts: dict[str, int]) -> str | None:
    cents = sum(json.loads(value or b"")["cents"] for _, value in rows)
    return None if cents == facts["cents"] else f"the results add up to {cents} cents, not {facts['cents']}"


def _joins(rows: Rows, facts: dict[str, int]) -> str | None:
    """Every order once, and each with its own partner: a customer's name or an item ends with the customer's number."""
    ids, again, strangers = set(), 0, 0
    for _, value in rows:
        result = json.loads(value or b"{}")
        again += result["id"] in ids
        ids.add(result["id"])
        strangers += result["customer"][1:] != result["name"].rpartition(" ")[2].rpartition("-")[2]
    if strangers:
        return f"{strangers} results with another's partner"
    if again:
        return f"{again} results of an order that has one already"
    return None if len(ids) == facts["records"] else f"{len(ids)} orders among the results, not {facts['records']}"


def _adds_up(of: Callable[[Rows], int]) -> Callable[[Rows, dict[str, int]], str | None]:
    def check(rows: Rows, facts: dict[str, int]) -> str | None:
        counts, wanted = of(rows), facts.get("words", facts["records"])
        return None if counts == wanted else f"the counts add up to {counts}, not {wanted}"

    return check


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


CHECKS: dict[Check, Callable[[Rows, dict[str, int]], str | None]] = {
    "copies": _copies,
    "priced": _prices,
    "joined": _joins,
    "counts": _adds_up(_counted),
    "windows": _adds_up(_in_windows),
    "sessions": _adds_up(_in_sessions),
}
