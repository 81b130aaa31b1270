"""The ledger app in the size that one aimed fault needs: four keys of sixty records, two partitions, workers that are broken.

Used by the rows of this directory and by the quick ones of tests/integration/process_faults. Broker, topics, input and the check at
the end are the ledger's; this adds workers with a fault in them and the steps that rows have in common.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.ledger.app import SUB_TOPOLOGIES
from tests.ledger.bench import APPLICATION, EXACTLY_ONCE, Bench, open_bench
from tests.ledger.fleet import Worker
from tests.ledger.oracle import check_exactly_once
from tests.ledger.workload import LedgerRecord, LedgerSpec, generate

PARTITIONS = 2
TASKS = SUB_TOPOLOGIES * PARTITIONS
"""One sub-topology reads the input, the others what it passes on."""
START_SECONDS = 45.0
FAULT_SECONDS = 45.0
FEW_RECORDS = 6
COMMIT_SECONDS = 0.2
"""Twice the commit interval of the workers."""
KILLED = -9
FAILED = 1


@dataclass
class ReducedLedger:
    bench: Bench
    records: list[LedgerRecord]

    def worker(self) -> Worker:
        """A new one, not started. Options of faulty_worker.py are given to its `start`."""
        fleet = self.bench.fleet
        name = f"worker-{len(fleet.workers) + 1}"
        command = [sys.executable, "-m", "tests.e2e.faults.faulty_worker", "--bootstrap", fleet.bootstrap]
        command += ["--app", fleet.application_id, "--guarantee", fleet.guarantee]
        worker = Worker(name, fleet.directory / name, command)
        fleet.workers.append(worker)
        return worker

    def started(self, *options: str) -> Worker:
        worker = self.worker()
        worker.start(*options)
        return worker

    def doomed(self, *options: str) -> Worker:
        """A worker whose end is part of the plan."""
        worker = self.started(*options)
        worker.must_live = False
        return worker

    def wait_until_running(self, since: float, tasks: int = TASKS) -> None:
        self.bench.fleet.wait_for_event("task running", count=tasks, since=since, seconds=START_SECONDS)

    def write_some(self, share: float, seconds: float = 0.0) -> None:
        """The next records, up to that share of all of them."""
        begin = len(self.bench.written)
        self.bench.write(self.records[begin : int(len(self.records) * share)], seconds)

    def write_rest(self, seconds: float = 0.0) -> None:
        self.bench.write(self.records[len(self.bench.written) :], seconds)

    def write_until_it_ends(self, worker: Worker, most: float = 0.9) -> None:
        """A few records at a time, so that there are many commits before that share of all records is written."""
        end = int(len(self.records) * most)
        while worker.is_running and len(self.bench.written) < end:
            begin = len(self.bench.written)
            self.bench.write(self.records[begin : min(begin + FEW_RECORDS, end)])
            time.sleep(COMMIT_SECONDS)

    def finish(self) -> None:
        """Wait until everything is processed, close the workers, and see that nothing is lost, repeated, out of order or torn."""
        anomalies = self.bench.finish()
        assert not anomalies, "\n".join(str(anomaly)[:2000] for anomaly in anomalies[:20])

    def finish_with(self, good: list[LedgerRecord], incomplete: Collection[str] = ()) -> None:
        """As `finish`, where only `good` of the input counts; `incomplete` are keys that lack some of it."""
        self.bench.wait_until_caught_up()
        assert self.bench.fleet.close() == [] and self.bench.fleet.deaths == []
        keys = {record.key for record in good} - set(incomplete)
        assert check_exactly_once(good, self.bench.outputs(), keys, accounts_first=False) == []
        assert self.bench._check_state() + self.bench._check_owners() == []

    def half_done(self, share: float = 0.5) -> Worker:
        """A worker that has processed that share of the input, and is closed."""
        worker = self.started()
        self.write_some(share)
        self.bench.wait_until_caught_up()
        assert worker.leave() == 0
        return worker

    def task_directories(self, worker: Worker) -> list[Path]:
        return sorted(path for path in (worker.state_directory / APPLICATION).glob("*_*") if path.is_dir())

    def offset_of(self, record: LedgerRecord) -> int:
        """Each record is written once, so its offset is the number of those before it in its partition."""
        return sum(other.partition == record.partition for other in self.records[: record.record_id])


@contextmanager
def reduced_ledger(
    directory: Path, *, seed: int = 1, keys: int = 4, records_per_key: int = 60, guarantee: str = EXACTLY_ONCE
) -> Iterator[ReducedLedger]:
    spec = LedgerSpec(seed, keys, records_per_key, PARTITIONS)
    with open_bench(spec, guarantee, keep=directory) as bench:
        yield ReducedLedger(bench, list(generate(bench.spec)))


def ends_with(worker: Worker, status: int, seconds: float = FAULT_SECONDS) -> None:
    """Wait for the end of a worker, and see that it is the expected one."""
    found = worker.wait_for_end(seconds)
    assert found == status, f"{worker.name} ended with {found}, not {status}:\n{worker.tail()}"


def failure_of(worker: Worker) -> str:
    """What it said when it ended by itself, last."""
    return str(events_of(worker, "worker ended")[-1]["failure"] or "")


def kind_of_failure(worker: Worker) -> str:
    """The name of the error that ended it."""
    return str(events_of(worker, "app failed")[-1]["kind"])


def runs_an_input(worker: Worker, since: float = 0.0) -> bool:
    """Whether it was given a task that reads the input; those of other sub-topologies read what the first one writes."""
    return any(event["task"].startswith("0_") for event in events_of(worker, "task running", since))


def events_of(worker: Worker, name: str, since: float = 0.0) -> list[dict[str, Any]]:
    return [e for e in worker.events() if e.get("event") == name and e.get("timestamp", 0) >= since]


def wait_for(condition: Callable[[], bool], what: str, seconds: float = FAULT_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {seconds:g} s"
        time.sleep(0.05)
