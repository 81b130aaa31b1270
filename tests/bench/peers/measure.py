"""One run of one runner on one workload, watched from outside until all its results are there."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.peers import process_tree
from tests.bench.peers.broker_view import BrokerView
from tests.bench.peers.dataset import PARTITIONS, Dataset
from tests.bench.peers.runners_built import ROOT, Runner
from tests.bench.peers.workloads import WORKLOADS, Workload, what_is_wrong

STEADY_FROM = 0.25
IDLE_SECONDS = 3.0
POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Sample:
    """Where a run was at a time."""

    at: float
    cpu: float
    broker_cpu: float
    done: float
    """Records of the input."""


class FailedRunError(Exception):
    """It ended, or did not finish in time."""


@dataclass
class Measurement:
    """Everything one run needs."""

    runner: Runner
    command: Sequence[str]
    name: str
    view: BrokerView
    data: Dataset
    work: Path
    timeout: float

    @property
    def workload(self) -> Workload:
        return WORKLOADS[self.name]

    def run(self) -> dict[str, Any]:
        """A row of the results; `wrong` or `failed` says why it does not count."""
        app_id = f"b{time.time_ns() // 1_000_000:x}-{self.runner.name}-{self.name.lower()}"
        thousands = self.runner.thousands[self.workload.family]
        row: dict[str, Any] = {"runner": self.runner.name, "workload": self.name, "thousands": thousands}
        try:
            row |= self._restore(app_id) if self.name == "R" else self._whole(app_id, thousands)
        except (FailedRunError, RuntimeError) as error:
            row["failed"] = str(error)
        finally:
            self.view.clean(app_id)
            shutil.rmtree(self.work / app_id, ignore_errors=True)
        return row

    def _whole(self, app_id: str, thousands: int) -> dict[str, Any]:
        topic = self.data.topic(self.workload.family, thousands)
        partner = self.data.partner(self.workload.family, thousands)
        output = f"out-{app_id}"
        self.data.create(output)
        began, busy = time.monotonic(), process_tree.busy_core_seconds()
        with self._started(app_id, topic, output, partner, self.work / app_id) as process:
            samples = self._watch(process, app_id, topic, output)
            wall = time.monotonic() - began
            foreign = (process_tree.busy_core_seconds() - busy - samples[-1].cpu - _spent(samples).broker_cpu) / wall
            facts = {"rss_mb": round(process_tree.peak_megabytes(process.pid)), "idle_share": self._idle_share(process)}
        records = self.data.facts[topic]["records"]
        wrong = what_is_wrong(self.workload.check, self.view.rows(output), self.data.facts[topic])
        rates = {"all": _slope(samples, records, 0.0), "steady": _slope(samples, records, STEADY_FROM)}
        return {"records": records, "wrong": wrong, "foreign": round(max(0.0, foreign), 2), **facts, **rates}

    def _restore(self, app_id: str) -> dict[str, Any]:
        """Distinct keys are counted, the directory deleted, one record per partition sent again: only restored keys count 2."""
        found, rss = {}, 0
        for thousands in (1, self.runner.thousands["keys"]):
            app, output, private = (f"{prefix}{app_id}-{thousands}" for prefix in ("", "out-", "in-"))
            for topic in (output, private):
                self.data.create(topic)
            last = self._copied(self.data.topic("keys", thousands), private)
            self.data.facts[private] = {"records": thousands * 1000}
            directory = self.work / app_id / str(thousands)
            with self._started(app, private, output, "customers", directory) as process:
                self._watch(process, app, private, output)
            shutil.rmtree(directory)
            self._await(lambda app=app: self.view.group_is_empty(app), "the group to be empty")
            self.data.send(private, last.values(), {row[0] or b"": partition for partition, row in last.items()})
            before, began = sum(self.view.ends(output).values()), time.monotonic()
            with self._started(app, private, output, "customers", directory) as process:
                self._await(
                    lambda process=process, output=output, before=before: (
                        _lives(process) and sum(self.view.ends(output).values()) >= before + PARTITIONS
                    ),
                    "results after the restore",
                )
                found[thousands] = (time.monotonic() - began, process_tree.cpu_seconds(process.pid))
                rss = round(process_tree.peak_megabytes(process.pid))
            twice = sum(1 for _, value in self.view.rows(output) if value == b"2")
            if twice < PARTITIONS:
                return {"wrong": f"{twice} of {PARTITIONS} counts were restored"}
        (small_wall, small_cpu), (wall, cpu) = found.values()
        keys = (max(found) - 1) * 1000
        net = {"rate": keys / (wall - small_wall), "cpu_us": (cpu - small_cpu) / keys * 1e6, "broker_us": 0.0}
        return {
            "records": keys,
            "wrong": None,
            "rss_mb": rss,
            "start_s": round(small_wall, 2),
            "all": net,
            "steady": net,
        }

    def _copied(self, topic: str, target: str) -> dict[int, tuple[bytes | None, bytes, int]]:
        """Into a topic of the same partitions; the last record of each."""
        rows, partitions, last = [], {}, {}
        for message in self.view.messages(topic):
            row = (message.key(), message.value() or b"", message.timestamp()[1])
            rows.append(row)
            partitions[row[0] or b""] = message.partition()
            last[message.partition() or 0] = row
        self.data.send(target, rows, {key: partition or 0 for key, partition in partitions.items()})
        return last

    @contextmanager
    def _started(
        self, app: str, topic: str, output: str, partner: str, directory: Path
    ) -> Iterator[subprocess.Popen[bytes]]:
        named = {"bootstrap": self.view.bootstrap, "app-id": app, "input": topic, "output": output, "partner": partner}
        arguments = [part for name, value in named.items() for part in (f"--{name}", value)]
        command = [*self.command, self.workload.code, *arguments, "--state-dir", str(directory)]
        with (self.work / f"{self.runner.name}.log").open("ab") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, cwd=ROOT)
            try:
                yield process
            finally:
                _stop(process)

    def _watch(self, process: subprocess.Popen[bytes], app: str, topic: str, output: str) -> list[Sample]:
        records = self.data.facts[topic]["records"]
        wanted = self._wanted_outputs(topic)
        ends, group = self.view.ends(topic), self.view.group(app)
        samples = [Sample(time.monotonic(), 0.0, process_tree.cpu_seconds(self.view.pid), 0.0)]
        deadline = time.monotonic() + self.timeout
        try:
            while True:
                time.sleep(POLL_SECONDS)
                written = sum(self.view.ends(output).values()) if wanted else 0
                all_written = not wanted or written >= wanted
                if self.runner.group:
                    inner = self.view.repartition_topics(app)
                    committed = group.committed(topic, *inner)
                    done: float = sum(offset for at, offset in committed.items() if at in ends)
                    is_over = (
                        all_written and done >= records and (not inner or committed == self.view.ends(topic, *inner))
                    )
                else:
                    done = written / wanted * records if wanted else 0.0
                    is_over = (all_written and bool(wanted)) or process.poll() is not None
                self._sample(samples, process, float(records) if is_over else min(done, records * 0.999))
                if is_over:
                    return samples
                if not _lives(process):
                    raise FailedRunError(f"it ended with {process.returncode}; see {self.runner.name}.log")
                if time.monotonic() > deadline:
                    raise FailedRunError(f"not finished after {self.timeout:g} s: {done:.0f} of {records} records")
        finally:
            group.close()

    def _sample(self, samples: list[Sample], process: subprocess.Popen[bytes], done: float) -> None:
        cpu = process_tree.cpu_seconds(process.pid) or samples[-1].cpu  # a process that has ended has no /proc
        samples.append(Sample(time.monotonic(), cpu, process_tree.cpu_seconds(self.view.pid), done))

    def _wanted_outputs(self, topic: str) -> int | None:
        facts = self.data.facts[topic]
        if self.name in self.runner.finals or self.name == "R":
            return None if self.runner.group else 0
        if self.workload.outputs is None:
            return facts.get("words") if not self.runner.group else None
        return facts[self.workload.outputs]

    def _idle_share(self, process: subprocess.Popen[bytes]) -> float | None:
        """CPU per second when there is nothing to do."""
        if not _lives(process):
            return None
        before = process_tree.cpu_seconds(process.pid)
        time.sleep(IDLE_SECONDS)
        return round((process_tree.cpu_seconds(process.pid) - before) / IDLE_SECONDS, 4)

    def _await(self, holds: Any, what: str) -> None:
        deadline = time.monotonic() + self.timeout
        while not holds():
            if time.monotonic() > deadline:
                raise FailedRunError(f"waited {self.timeout:g} s for {what}")
            time.sleep(POLL_SECONDS)


def _lives(process: subprocess.Popen[bytes]) -> bool:
    return process.poll() is None


def _stop(process: subprocess.Popen[bytes]) -> None:
    if _lives(process):
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()


def _spent(samples: Sequence[Sample]) -> Sample:
    first, last = samples[0], samples[-1]
    return Sample(last.at - first.at, last.cpu - first.cpu, last.broker_cpu - first.broker_cpu, last.done - first.done)


def _slope(samples: Sequence[Sample], records: int, share: float) -> dict[str, float] | None:
    """From the first progress past a share of the input to the end; None if that is too little to say anything."""
    moved = [sample for sample in samples if sample.done > share * records]
    # Where progress is seen only at the end, the whole process is what there is to measure.
    first = moved[0] if len(moved) > 1 and moved[0].done < 0.8 * records else samples[0]
    spent = _spent([first, next(sample for sample in samples if sample.done >= samples[-1].done)])
    if spent.done < 0.2 * records or spent.at <= 0:
        return None
    micro = 1e6 / spent.done
    return {"rate": spent.done / spent.at, "cpu_us": spent.cpu * micro, "broker_us": spent.broker_cpu * micro}
