"""The results as one table: medians of the runs that count, and what the engine needs of each peer's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.bench.peers import bars
from tests.bench.peers.comparison import OURS, Comparison
from tests.bench.peers.runners_built import Runner
from tests.bench.peers.workloads import WORKLOADS

HEAD = (
    "workload",
    "runner",
    "records",
    "CPU us/record (best)",
    "ours to it",
    "k records/s (best)",
    "ours to it",
    "start s",
    "idle",
    "RSS MB",
    "broker us",
    "runs",
)


def lines(rows: Sequence[dict[str, Any]], runners: dict[str, Runner]) -> list[str]:
    seen = Comparison(rows)
    found = [f"| {' | '.join(HEAD)} |", "|" + " --- |" * len(HEAD)]
    everyone = {row["runner"] for row in rows}
    for name in seen.workloads:
        base = name.split(" ")[0]
        for runner in runners.values():
            label = f"| {name} {WORKLOADS[base].title} | {runner.name} | "
            if runner.name in seen.runners(name):
                found.append(label + f"{' | '.join(_cells(seen, name, runner.name))} |")
            elif runner.name in everyone and base not in runner.workloads and not seen.is_long(name):
                found.append(label + "none |" + " |" * (len(HEAD) - 3))
    found += [
        f"NOT COUNTED: {row['runner']} {row['workload']}: {row.get('failed') or row.get('wrong') or 'too short to measure'}"
        for row in seen.left_out
    ]
    return [*found, "", *bars.lines(rows)]


def _cells(seen: Comparison, name: str, runner: str) -> list[str]:
    cpu, rate = seen.values(name, runner, "cpu_us"), seen.values(name, runner, "rate")
    start, idle = seen.median(name, runner, "start_s"), seen.median(name, runner, "idle_share")
    runs = seen.runs(name, runner)
    return [
        f"{runs[0]['records'] / 1000:,.0f} k",
        f"{seen.median(name, runner, 'cpu_us') or 0:.2f} ({cpu[0]:.2f})",
        _times(seen, name, runner, "cpu_us"),
        f"{(seen.median(name, runner, 'rate') or 0) / 1000:,.1f} ({rate[-1] / 1000:,.1f})",
        _times(seen, name, runner, "rate"),
        "" if start is None else f"{start:.1f}",
        "" if idle is None else f"{idle:.1%}",
        f"{seen.median(name, runner, 'rss_mb') or 0:.0f}",
        f"{seen.median(name, runner, 'broker_us') or 0:.2f}",
        str(len(runs)),
    ]


def _times(seen: Comparison, name: str, runner: str, field: str) -> str:
    ratio = None if runner == OURS else seen.ratio(name, runner, field)
    return "" if ratio is None else f"{ratio:.2f}x"
