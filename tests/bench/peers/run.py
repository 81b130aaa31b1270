"""Runs the engine and its peers on the same workloads, in turns, checks what they say, and prints one table. See README.md."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.bench import page
from tests.bench.peers import plan, restore, table
from tests.bench.peers.broker_view import BrokerView
from tests.bench.peers.comparison import OURS
from tests.bench.peers.dataset import Dataset
from tests.bench.peers.measure import Measurement
from tests.bench.peers.plan import Run
from tests.bench.peers.runner_process import FailedRunError
from tests.bench.peers.runners_built import BUILT, Runner, all_runners
from tests.bench.peers.workloads import LONG, WORKLOADS

from streamfleet_devbroker.cluster import Cluster, ClusterSpec

RESULTS = BUILT / "peers.json"
BROKER = {"log.retention.ms": "-1"}
Row = dict[str, Any]


def main(arguments: list[str]) -> int:
    runners = all_runners()
    given = _parser(runners).parse_args(arguments)
    rows: list[Row] = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else []
    if not given.table:
        chosen = [runners[name] for name in given.runners]
        runs = plan.runs(chosen, given.workloads, given.rounds, long=given.long, most=given.thousands)
        again = {(run.name, given.long) for run in runs}
        kept = [row for row in rows if given.add and (row["workload"], row["long"]) not in again]
        rows = Bench(runs, plan.estimates(runs, rows), given).measure(kept)
    lines = table.lines(rows, runners)
    print("\n".join(lines))
    if given.page:
        page.put("peers", [page.machine(), "", *lines])
    if given.strict and any("MISSED" in line for line in lines):
        return 1
    return 1 if any(row.get("wrong") or row.get("failed") for row in rows if row["runner"] == OURS) else 0


def _parser(runners: dict[str, Runner]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.peers.run", description=__doc__)
    default = [name for name, runner in runners.items() if runner.default]
    add = parser.add_argument
    add("--runners", nargs="*", default=default, choices=list(runners), metavar="NAME", help=", ".join(runners))
    add(
        "--workloads",
        nargs="*",
        choices=list(WORKLOADS),
        metavar="NAME",
        help=f"{', '.join(WORKLOADS)} (default: all; with --long: {', '.join(LONG)})",
    )
    add("--rounds", type=int, default=1, help="of all runners on all workloads (default: 1)")
    add(
        "--long",
        action="store_true",
        help="three to eight million records, with Java only: what a JVM does once it has compiled",
    )
    add("--thousands", type=int, help="of records, for each runner that would get more (defaults: runners.toml)")
    add("--timeout", type=float, default=300.0, help="seconds for one run (default: 300)")
    add("--add", action="store_true", help="keep former results of other workloads")
    add("--page", action="store_true", help="put the table into docs/performance.md as well")
    add("--table", action="store_true", help=f"print {RESULTS.name} again, run nothing")
    add(
        "--strict",
        action="store_true",
        help="end with 1 if a bar is missed as well (always: if a result of ours is wrong)",
    )
    return parser


class Bench:
    """One broker, all runs."""

    def __init__(self, runs: Sequence[Run], expected: Sequence[float], given: argparse.Namespace) -> None:
        """`expected` are seconds, of each run."""
        self._runs = runs
        self._expected = expected
        self._given = given
        self._began = time.strftime("%Y-%m-%dT%H:%M:%S")

    def measure(self, rows: list[Row]) -> list[Row]:
        """With the new rows behind those that are given; written down after each run."""
        print(f"{len(self._runs)} runs: about {minutes(sum(self._expected))}", flush=True)
        BUILT.mkdir(parents=True, exist_ok=True)
        runners = dict.fromkeys(run.runner for run in self._runs)
        commands = {runner.name: self._command(runner, rows) for runner in runners}
        work = BUILT / f"work-{os.getpid()}"  # the logs of the runners stay there
        work.mkdir(parents=True)
        broker, began = work / "broker", time.monotonic()
        with Cluster.start(ClusterSpec(broker, heap_mb=1024, settings=BROKER), print) as cluster:
            view, data = BrokerView(cluster.bootstrap_servers, cluster.pids[0]), Dataset(cluster.bootstrap_servers)
            for number, run in enumerate(self._runs, 1):
                command = commands[run.runner.name]
                if command is None:
                    continue
                timeout, long = self._given.timeout * (4 if self._given.long else 1), self._given.long
                measurement = Measurement(
                    run.runner, command, run.name, run.thousands, view, data, work, timeout, is_long=long
                )
                rows.append(self._row(measurement, f"{self._began} {run.turn}"))
                left = plan.left(self._expected, number, time.monotonic() - began)
                _tell(f"{number}/{len(self._runs)} round {run.turn + 1}", rows[-1], minutes(left))
                _write(rows)
        shutil.rmtree(broker, ignore_errors=True)
        return rows

    def _command(self, runner: Runner, rows: list[Row]) -> list[str] | None:
        """None, and a row that says why, if it cannot be built: it is missing from the table for a reason."""
        try:
            return runner.command()
        except RuntimeError as error:
            rows.append({"runner": runner.name, "workload": "all", "long": self._given.long, "failed": str(error)})
            return None

    def _row(self, measurement: Measurement, round_name: str) -> Row:
        app_id = f"b{time.time_ns() // 1_000_000:x}-{measurement.runner.name}-{measurement.name.lower()}"
        row: Row = {"runner": measurement.runner.name, "workload": measurement.name, "long": self._given.long}
        row["round"] = round_name
        try:
            row |= restore.run(measurement, app_id) if measurement.name == "R" else measurement.run(app_id)
        except (FailedRunError, RuntimeError) as error:
            row["failed"] = str(error)
        finally:
            measurement.clean(app_id)
        return row


def _write(rows: list[Row]) -> None:
    part = Path(f"{RESULTS}.part")
    part.write_text(json.dumps(rows, indent=1), "utf-8")
    part.replace(RESULTS)


def _tell(which: str, row: Row, left: str) -> None:
    steady = row.get("steady") or {"cpu_us": 0.0, "rate": 0.0}
    verdict = row.get("failed") or row.get("wrong") or "ok"
    print(
        f"{time.strftime('%H:%M:%S')} {which} {row['workload']:4} {row['runner']:12} {steady['cpu_us']:8.2f} us "
        f"{steady['rate']:12,.0f}/s  {row.get('rss_mb', 0):5} MB  foreign {row.get('foreign', 0)}  {verdict}; {left} left",
        flush=True,
    )


def minutes(seconds: float) -> str:
    whole = round(seconds / 60)
    return f"{whole // 60} h {whole % 60} min" if whole >= 60 else f"{whole} min"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
