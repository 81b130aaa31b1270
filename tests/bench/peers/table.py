"""The results as one table: medians of the runs that count, and ratios to Java's of the same workload."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from tests.bench.peers.workloads import WORKLOADS

HEAD = (
    "workload",
    "runner",
    "CPU us/record (best)",
    "x Java",
    "k records/s (best)",
    "x Java",
    "broker us",
    "RSS MB",
    "idle",
    "runs",
)


def lines(rows: Sequence[dict[str, Any]]) -> list[str]:
    counted = [row for row in rows if row.get("steady") and not row.get("wrong") and not row.get("failed")]
    found = [f"| {' | '.join(HEAD)} |", "|" + " --- |" * len(HEAD)]
    for name, workload in WORKLOADS.items():
        of_workload = [row for row in counted if row["workload"] == name]
        java = [row for row in of_workload if row["runner"] == "java"]
        for runner in dict.fromkeys(row["runner"] for row in of_workload):
            own = [row for row in of_workload if row["runner"] == runner]
            found.append(f"| {name} {workload.title} | {runner} | {' | '.join(_cells(own, java))} |")
    found += [
        f"NOT COUNTED: {row['runner']} {row['workload']}: {row.get('failed') or row.get('wrong') or 'too short to measure'}"
        for row in rows
        if row not in counted
    ]
    return found


def _cells(own: Sequence[dict[str, Any]], java: Sequence[dict[str, Any]]) -> list[str]:
    cpu, rate = _values(own, "cpu_us"), _values(own, "rate")
    idle = [row["idle_share"] for row in own if row.get("idle_share") is not None]
    return [
        f"{statistics.median(cpu):.2f} ({cpu[0]:.2f})",
        f"{statistics.median(cpu) / statistics.median(_values(java, 'cpu_us')):.2f}" if java else "",
        f"{statistics.median(rate) / 1000:,.1f} ({rate[-1] / 1000:,.1f})",
        f"{statistics.median(rate) / statistics.median(_values(java, 'rate')):.2f}" if java else "",
        f"{statistics.median(_values(own, 'broker_us')):.2f}",
        str(max(row["rss_mb"] for row in own)),
        f"{min(idle):.1%}" if idle else "",
        str(len(own)),
    ]


def _values(rows: Sequence[dict[str, Any]], field: str) -> list[float]:
    return sorted(row["steady"][field] for row in rows)
