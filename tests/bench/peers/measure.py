"""One run of one runner on one workload, watched from outside until all its results are there. Restoring is in restore.py."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.peers import process_tree
from tests.bench.peers.broker_view import BrokerView, GroupView
from tests.bench.peers.dataset import Dataset
from tests.bench.peers.runner_process import FailedRunError, Place, RunnerProcess, started
from tests.bench.peers.runners_built import Runner
from tests.bench.peers.workloads import WORKLOADS, Workload, what_is_wrong

STEADY_FROM = 0.25
"""Of the input. Lines are measured from the first commit on: later, words that were split before are still to be counted."""
COMPILED_AFTER = 2_000_000
"""Records that Java's compiler is at work for: a long run is measured behind them, but half of it at least."""
SETTLE_SECONDS = 1.0
IDLE_SECONDS = 5.0
POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Sample:
    """Where a run was at a time."""

    at: float
    cpu: float
    broker_cpu: float
    done: float
    """Records of the input."""


@dataclass
class Measurement:
    """Everything one run needs."""

    runner: Runner
    command: Sequence[str]
    name: str
    thousands: int
    view: BrokerView
    data: Dataset
    work: Path
    timeout: float
    is_long: bool = False

    @property
    def workload(self) -> Workload:
        return WORKLOADS[self.name]

    @property
    def log(self) -> Path:
        return self.work / f"{self.runner.name}.log"

    def place(self, app_id: str, topic: str, output: str) -> Place:
        partner = self.data.partner(self.workload.family, self.thousands)
        return Place(app_id, topic, output, partner, self.work / app_id)

    def run(self, app_id: str) -> dict[str, Any]:
        """What was seen; `wrong` says why it does not count."""
        topic, output = self.data.topic(self.workload.family, self.thousands), f"out-{app_id}"
        self.data.create(output)
        place = self.place(app_id, topic, output)
        began, busy = time.monotonic(), process_tree.busy_core_seconds()
        with started(self.command, self.workload.code, self.view.bootstrap, place, self.log) as process:
            samples, first_result = self.watch(process, place)
            wall = time.monotonic() - began
            foreign = (process_tree.busy_core_seconds() - busy - samples[-1].cpu - spent(samples).broker_cpu) / wall
            peak, idle = process.peak_megabytes, _idle_share(process)
        facts = self.data.facts[topic]
        rows = self.view.rows(output)
        return {
            "records": facts["records"],
            "wrong": what_is_wrong(self.workload.check, rows, facts, self._wanted_outputs(topic) or None),
            "foreign": round(max(0.0, foreign), 2),
            "start_s": None if first_result is None else round(first_result - began, 2),
            "rss_mb": round(peak),
            "idle_share": idle,
            "steady": slope(samples, facts["records"], steady_from(self.workload, facts["records"], self.is_long)),
        }

    def watch(self, process: RunnerProcess, place: Place) -> tuple[list[Sample], float | None]:
        """Until the end: where the run was all the time, and when its first result was there."""
        records, wanted = self.data.facts[place.input]["records"], self._wanted_outputs(place.input)
        group = self.view.group(place.app_id) if self.runner.group else None
        samples = [Sample(time.monotonic(), 0.0, self.view.cpu_seconds, 0.0)]
        first_result, deadline = None, time.monotonic() + self.timeout
        try:
            while True:
                time.sleep(POLL_SECONDS)
                is_alive = process.lives  # asked before the results, or the last ones would be missed
                needs_ends = wanted is not None or first_result is None
                written = sum(self.view.ends(place.output).values()) if needs_ends else 0
                first_result = first_result or (time.monotonic() if written else None)
                if group is not None:
                    done, is_over = self._progress(group, place, records)
                    is_over = is_over and (not wanted or written >= wanted)
                else:
                    done = written / wanted * records if wanted else 0.0
                    is_over = (bool(wanted) and written >= (wanted or 0)) or not is_alive
                broker_cpu = self.view.cpu_seconds
                done = float(records) if is_over else min(done, records * 0.999)
                samples.append(Sample(time.monotonic(), process.cpu_seconds, broker_cpu, done))
                if is_over:
                    return samples, first_result
                process.require_life()
                if time.monotonic() > deadline:
                    raise FailedRunError(f"not finished after {self.timeout:g} s: {done:.0f} of {records} records")
        finally:
            if group is not None:
                group.close()

    def _progress(self, group: GroupView, place: Place, records: int) -> tuple[float, bool]:
        """Records of the input that are committed, and whether that is all, of topics in between as well."""
        inner = self.view.repartition_topics(place.app_id)
        partners = [place.partner] if self.workload.family == "pairs" else []
        committed = group.committed(place.input, *partners, *inner)
        done = sum(offset for (topic, _), offset in committed.items() if topic == place.input)
        if done < records:
            return done, False
        ends = self.view.ends(*partners, *inner) if partners or inner else {}
        return done, all(committed.get(at, 0) >= end for at, end in ends.items())

    def _wanted_outputs(self, topic: str) -> int | None:
        facts = self.data.facts[topic]
        if self.name in self.runner.finals or self.name == "R":
            return None
        if self.workload.outputs is None:
            return None if self.runner.group else facts.get("words")
        return facts[self.workload.outputs]

    def await_that(self, holds: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + self.timeout
        while not holds():
            if time.monotonic() > deadline:
                raise FailedRunError(f"waited {self.timeout:g} s for {what}")
            time.sleep(POLL_SECONDS)

    def clean(self, app_id: str) -> None:
        self.view.clean(app_id)
        shutil.rmtree(self.work / app_id, ignore_errors=True)


def _idle_share(process: RunnerProcess) -> float | None:
    """CPU per second when there is nothing to do; None if the runner ends then."""
    time.sleep(SETTLE_SECONDS)
    before = process.cpu_seconds
    time.sleep(IDLE_SECONDS)
    return round((process.cpu_seconds - before) / IDLE_SECONDS, 4) if process.lives else None


def steady_from(workload: Workload, records: int, is_long: bool) -> float:
    """Which share of the input is not measured."""
    if workload.family == "lines":
        return 0.0
    return max(STEADY_FROM, min(0.5, COMPILED_AFTER / records)) if is_long else STEADY_FROM


def spent(samples: Sequence[Sample]) -> Sample:
    """Between the first and the last."""
    first, last = samples[0], samples[-1]
    return Sample(last.at - first.at, last.cpu - first.cpu, last.broker_cpu - first.broker_cpu, last.done - first.done)


def slope(samples: Sequence[Sample], records: int, share: float) -> dict[str, float] | None:
    """From the first progress past a share of the input to the end; None if that is too little to say anything."""
    moved = [sample for sample in samples if sample.done > share * records]
    # Where progress is seen only at the end, the whole process is what there is to measure.
    first = moved[0] if len(moved) > 1 and moved[0].done < 0.8 * records else samples[0]
    steady = spent([first, next(sample for sample in samples if sample.done >= samples[-1].done)])
    if steady.done < 0.2 * records or steady.at <= 0:
        return None
    micro = 1e6 / steady.done
    return {"rate": steady.done / steady.at, "cpu_us": steady.cpu * micro, "broker_us": steady.broker_cpu * micro}
