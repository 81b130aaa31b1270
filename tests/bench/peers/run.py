"""Runs the engine and its peers on the same workloads, one after the other, and prints one table. See README.md."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from typing import Any

from tests.bench.peers import table
from tests.bench.peers.broker_view import BrokerView
from tests.bench.peers.dataset import Dataset
from tests.bench.peers.measure import Measurement
from tests.bench.peers.runners_built import BUILT, Runner, all_runners
from tests.bench.peers.workloads import WORKLOADS

from streamfleet_devbroker.cluster import Cluster, ClusterSpec

RESULTS = BUILT / "peers.json"
BROKER = {"log.retention.ms": "-1"}


def main(arguments: list[str]) -> int:
    runners = all_runners()
    parser = argparse.ArgumentParser(prog="python -m tests.bench.peers.run", description=__doc__)
    parser.add_argument("--runners", nargs="*", default=list(runners), choices=list(runners), metavar="NAME")
    parser.add_argument("--workloads", nargs="*", default=list(WORKLOADS), choices=list(WORKLOADS), metavar="NAME")
    parser.add_argument("--repeats", type=int, default=1, help="rounds (default: 1)")
    parser.add_argument("--timeout", type=float, default=240.0, help="seconds for one run (default: 240)")
    parser.add_argument("--table", action="store_true", help=f"print {RESULTS.name} again, run nothing")
    given = parser.parse_args(arguments)
    if given.table:
        print("\n".join(table.lines(json.loads(RESULTS.read_text("utf-8")))))
        return 0
    rows = _measured([runners[name] for name in given.runners], given.workloads, given.repeats, given.timeout)
    print("\n".join(table.lines(rows)))
    return 1 if any(row.get("wrong") or row.get("failed") for row in rows if row["runner"] == "streamfleet") else 0


def _measured(runners: list[Runner], names: list[str], repeats: int, timeout: float) -> list[dict[str, Any]]:
    commands, rows = _commands(runners)
    work = BUILT / f"work-{os.getpid()}"  # the logs of the runners stay there
    work.mkdir(parents=True)
    broker = work / "broker"
    with Cluster.start(ClusterSpec(broker, heap_mb=1024, settings=BROKER), print) as cluster:
        view, data = BrokerView(cluster.bootstrap_servers, cluster.pids[0]), Dataset(cluster.bootstrap_servers)
        for turn in range(repeats):
            for name in names:
                for runner in (r for r in runners if name in r.workloads and r.name in commands):
                    row = Measurement(runner, commands[runner.name], name, view, data, work, timeout).run()
                    rows.append(row)
                    _tell(turn, row)
                    RESULTS.write_text(json.dumps(rows, indent=1))
    shutil.rmtree(broker, ignore_errors=True)
    return rows


def _commands(runners: list[Runner]) -> tuple[dict[str, list[str]], list[dict[str, Any]]]:
    """What can be run, and a row for each runner that cannot: it is missing from the table for a reason."""
    BUILT.mkdir(parents=True, exist_ok=True)
    commands, missing = {}, []
    for runner in runners:
        try:
            commands[runner.name] = runner.command()
        except RuntimeError as error:
            missing.append({"runner": runner.name, "workload": "all", "failed": str(error)})
    return commands, missing


def _tell(turn: int, row: dict[str, Any]) -> None:
    steady = row.get("steady") or {"cpu_us": 0.0, "rate": 0.0}
    verdict = row.get("failed") or row.get("wrong") or "ok"
    print(
        f"{turn + 1} {row['workload']:4} {row['runner']:12} {steady['cpu_us']:8.2f} us {steady['rate']:12,.0f}/s"
        f"  {row.get('rss_mb', 0):5} MB  foreign {row.get('foreign', 0)}  {verdict}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
