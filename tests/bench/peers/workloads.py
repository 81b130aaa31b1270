"""What is run: the workloads, the input families, and what a correct result is."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

Check = Literal["copies", "priced", "counts", "windows", "joined", "pairs"]
Rows = Iterable[tuple[bytes | None, bytes | None]]


@dataclass(frozen=True)
class Workload:
    """`code` is what the runner is told; several workloads differ only by their input."""

    code: str
    family: str
    check: Check
    title: str
    outputs: str | None = None
    """Which field of the input's facts says how many results there are; None: that is open (caches)."""


WORKLOADS = {
    "W0": Workload("W0", "orders", "copies", "raw copy, clients only", "records"),
    "W1": Workload("W1", "orders", "priced", "JSON, filter, map, JSON", "priced"),
    "W2": Workload("W2", "orders", "counts", "count, every update", "records"),
    "W2u": Workload("W2", "uniform", "counts", "W2, a million uniform keys", "records"),
    "W3": Workload("W3", "orders", "counts", "count, default cache"),
    "W4": Workload("W4", "orders", "windows", "one-minute window, every update", "records"),
    "W4c": Workload("W4c", "orders", "windows", "one-minute window, default cache"),
    "W5": Workload("W5", "lines", "counts", "word count, per line of 5"),
    "W6": Workload("W6", "orders", "joined", "stream-table join", "records"),
    "W7": Workload("W7", "orders", "counts", "W2, exactly once"),
    "S": Workload("S", "orders", "windows", "session windows"),
    "J": Workload("J", "pairs", "pairs", "stream-stream join", "records"),
    "R": Workload("W2", "keys", "counts", "restore, per key"),
    "W1l": Workload("W1", "long", "priced", "W1, 8 million", "priced"),
    "W2l": Workload("W2", "long", "counts", "W2, 8 million", "records"),
    "W3l": Workload("W3", "long", "counts", "W3, 8 million"),
    "W6l": Workload("W6", "long", "joined", "W6, 8 million", "records"),
    "W7l": Workload("W7", "long", "counts", "W7, 8 million"),
}


def what_is_wrong(check: Check, rows: Rows, facts: dict[str, int]) -> str | None:
    """A sentence, or None when the results are right."""
    if check in ("copies", "pairs"):
        found = sum(1 for _ in rows)
        return None if found == facts["records"] else f"{found} results, not {facts['records']}"
    if check == "priced":
        cents = [json.loads(value or b"")["cents"] for _, value in rows]
        right = (facts["priced"], facts["cents"])
        return (
            None if (len(cents), sum(cents)) == right else f"{len(cents)} results with {sum(cents)} cents, not {right}"
        )
    if check == "joined":
        wrong = [key for key, value in rows if b'"Customer ' + (key or b"")[1:] + b'"' not in (value or b"")]
        return None if not wrong else f"{len(wrong)} results with another customer"
    wanted, total = facts.get("words", facts["records"]), sum(_last_counts(check, rows).values())
    return None if total == wanted else f"the counts add up to {total}, not {wanted}"


def _last_counts(check: Check, rows: Rows) -> dict[Any, int]:
    if check == "counts":
        return {key: int(value or b"0") for key, value in rows}
    last: dict[Any, int] = {}
    for key, value in rows:
        window = json.loads(value or b"{}")
        last[key, window["start"], window.get("end")] = window["count"]
    return last
