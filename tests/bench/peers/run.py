"""Runs the engine and its peers on the same workloads, in turns, checks what they say, and prints one table. See README.md."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from tests.bench import page
from tests.bench.peers import restore, table
from tests.bench.peers.broker_view import BrokerView
from tests.bench.peers.comparison import OURS
from tests.bench.peers.dataset import Dataset
from tests.bench.peers.measure import Measurement
from tests.bench.peers.runner_process import FailedRunError
from tests.bench.peers.runners_built import BUILT, Runner, all_runners
from tests.bench.peers.workloads import WORKLOADS

from streamfleet_devbroker.cluster import Cluster, ClusterSpec

RESULTS = BUILT / "peers.json"
BROKER = {"log.retention.ms": "-1"}
Row = dict[str, Any]


def main(arguments: list[str]) -> int:
    runners = all_runners()
    given = _parser(runners).parse_args(arguments)
    rows: list[Row] = json.loads(RESULTS.read_text("utf-8")) if (given.table or given.add) and RESULTS.exists() else []
    if not given.table:
        sizes = _sizes(runners, given)
        again = {(name, given.long) for name in given.workloads}
        kept = [row for row in rows if (row["workload"], row["long"]) not in again]
        rows = Bench(runners, sizes, given).measure(kept)
    lines = table.lines(rows, runners)
    print("\n".join(lines))
    if given.page:
        page.put("peers", [page.machine(), "", *lines])
    return 1 if any(row.get("wrong") or row.get("failed") for row in rows if row["runner"] == OURS) else 0


def _parser(runners: dict[str, Runner]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.peers.run", description=__doc__)
    default = [name for name, runner in runners.items() if runner.default]
    add = parser.add_argument
    add("--runners", nargs="*", default=default, choices=list(runners), metavar="NAME", help=", ".join(runners))
    add("--workloads", nargs="*", default=list(WORKLOADS), choices=list(WORKLOADS), metavar="NAME")
    add("--rounds", type=int, default=1, help="of all runners on all workloads (default: 1)")
    add(
        "--long",
        action="store_true",
        help="eight million records, with Java only: what a JVM does once it has compiled",
    )
    add("--thousands", type=int, help="of records, for each runner that would get more (defaults: runners.toml)")
    add("--timeout", type=float, default=300.0, help="seconds for one run (default: 300)")
    add("--add", action="store_true", help="keep former results of other workloads")
    add("--page", action="store_true", help="put the table into docs/performance.md as well")
    add("--table", action="store_true", help=f"print {RESULTS.name} again, run nothing")
    return parser


def _sizes(runners: dict[str, Runner], given: argparse.Namespace) -> dict[str, int]:
    sizes = {name: runners[name].long if given.long else runners[name].thousands for name in given.runners}
    most = given.thousands or max(size for size in sizes.values() if size is not None)
    return {name: min(size, most) for name, size in sizes.items() if size is not None}


class Bench:
    """One broker, all runs."""

    def __init__(self, runners: dict[str, Runner], sizes: dict[str, int], given: argparse.Namespace) -> None:
        self._runners = [runners[name] for name in sizes]
        self._sizes = sizes
        self._given = given
        self._began = time.strftime("%Y-%m-%dT%H:%M:%S")

    def measure(self, rows: list[Row]) -> list[Row]:
        """With the new rows behind those that are given; written down after each run."""
        BUILT.mkdir(parents=True, exist_ok=True)
        commands = {runner.name: self._command(runner, rows) for runner in self._runners}
        work = BUILT / f"work-{os.getpid()}"  # the logs of the runners stay there
        work.mkdir(parents=True)
        broker = work / "broker"
        with Cluster.start(ClusterSpec(broker, heap_mb=1024, settings=BROKER), print) as cluster:
            view, data = BrokerView(cluster.bootstrap_servers, cluster.pids[0]), Dataset(cluster.bootstrap_servers)
            for turn in range(self._given.rounds):
                for name in self._given.workloads:
                    for runner in self._runners:
                        command = commands[runner.name]
                        if name not in runner.workloads or command is None:
                            continue
                        thousands = WORKLOADS[name].thousands(self._sizes[runner.name])
                        timeout = self._given.timeout * (4 if self._given.long else 1)
                        row = self._row(
                            Measurement(runner, command, name, thousands, view, data, work, timeout),
                            f"{self._began} {turn}",
                        )
                        rows.append(row)
                        _tell(turn, row)
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


def _tell(turn: int, row: Row) -> None:
    steady = row.get("steady") or {"cpu_us": 0.0, "rate": 0.0}
    verdict = row.get("failed") or row.get("wrong") or "ok"
    print(
        f"{time.strftime('%H:%M:%S')} round {turn + 1} {row['workload']:4} {row['runner']:12} {steady['cpu_us']:8.2f} us "
        f"{steady['rate']:12,.0f}/s  {row.get('rss_mb', 0):5} MB  foreign {row.get('foreign', 0)}  {verdict}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
