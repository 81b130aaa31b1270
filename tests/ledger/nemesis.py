"""Seeded faults: a schedule is drawn from a seed (pure), then played on a bench.

    kill     kill -9 of a worker, started again after a while
    pause    SIGSTOP past the session time-out, then SIGCONT: a zombie
    leave    SIGTERM of a worker, which joins again after a while
    broker   kill -9 of the broker, started again after a while
    probe    a worker asks for a rebalance: no fault, but what may go wrong when tasks move to copies may do so now. Nothing that
             has to be explained afterwards is explained by it

Faults come one at a time, sometimes a second one beside the first, with quiet gaps in between.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from tests.ledger.bench import NODE, Bench
from tests.ledger.fleet import Worker
from tests.ledger.stints import Disturbance

Kind = Literal["kill", "pause", "leave", "broker", "probe"]
KINDS: tuple[Kind, ...] = ("kill", "pause", "leave", "broker")
KINDS_WITH_COPIES: tuple[Kind, ...] = (*KINDS, "probe")
WEIGHTS: dict[Kind, int] = {"kill": 4, "pause": 2, "leave": 2, "broker": 2, "probe": 4}
DURATIONS: dict[Kind, tuple[float, float]] = {
    "kill": (0.3, 4.0),
    "pause": (7.0, 10.0),
    "leave": (0.5, 4.0),
    "broker": (0.3, 3.0),
    "probe": (0.1, 0.2),
}
"""Seconds between the beginning and the end of a fault; a session lasts 6."""
WARM_UP_SECONDS = 4.0
QUIET_SECONDS = (2.5, 9.0)
"""Some gaps are shorter than a session, so that a fault meets a group that has not yet noticed the one before; some are longer."""
SECOND_FAULT_CHANCE = 0.3


@dataclass(frozen=True)
class Fault:
    kind: Kind
    worker: int
    """Which of the workers, from 0; of no meaning for the broker."""
    begin: float
    """Seconds after the start of the run."""
    end: float

    @property
    def victim(self) -> str:
        return "broker" if self.kind == "broker" else f"worker-{self.worker + 1}"

    def __str__(self) -> str:
        return f"{self.kind} {self.victim} for {self.end - self.begin:.1f} s"


def draw_schedule(seed: int, seconds: float, workers: int, kinds: Sequence[Kind] = KINDS) -> list[Fault]:
    """At least one fault, all of them over before `seconds`."""
    rng = random.Random(f"nemesis-{seed}")
    faults: list[Fault] = []
    at = WARM_UP_SECONDS
    while at + DURATIONS["pause"][1] < seconds or not faults:
        first = _draw(rng, at, workers, kinds)
        drawn = [first]
        if rng.random() < SECOND_FAULT_CHANCE:
            second = _draw(rng, rng.uniform(first.begin, first.end), workers, kinds)
            if not _same_victim(first, second):
                drawn.append(second)
        faults += drawn
        at = max(fault.end for fault in drawn) + rng.uniform(*QUIET_SECONDS)
    return faults


def _draw(rng: random.Random, at: float, workers: int, kinds: Sequence[Kind]) -> Fault:
    kind = rng.choices(kinds, [WEIGHTS[each] for each in kinds])[0]
    return Fault(kind, rng.randrange(workers), at, at + rng.uniform(*DURATIONS[kind]))


def _same_victim(one: Fault, other: Fault) -> bool:
    if "broker" in (one.kind, other.kind):
        return one.kind == other.kind
    return one.worker == other.worker


@dataclass(frozen=True)
class Played:
    """A fault as it happened, in wall-clock seconds."""

    fault: Fault
    begin: float
    end: float

    @property
    def disturbance(self) -> Disturbance:
        return Disturbance(self.fault.kind, int(self.begin * 1000), int(self.end * 1000))


def play(bench: Bench, faults: list[Fault], seconds: float, say: Callable[[str], None]) -> list[Played]:
    """Returns when all faults are over and the time is up. A worker that dies by itself is noted, and started again.

    A broker takes its time to come back; what comes after it is put off by as much, so that gaps stay gaps.
    """
    started = time.monotonic()
    begun: dict[Fault, float] = {}
    played = []
    for moment in _moments(faults):
        _wait_until(bench, started + moment.at)
        fault = moment.fault
        say(
            f"{time.monotonic() - started:5.1f} s  {fault if moment.is_begin else f'over: {fault.kind} {fault.victim}'}"
        )
        act_began = time.monotonic()
        if moment.is_begin:
            begun[fault] = time.time()
            _begin(bench, fault)
        else:
            _end(bench, fault)
            played.append(Played(fault, begun[fault], time.time()))
        started += time.monotonic() - act_began
    _wait_until(bench, started + seconds)
    return played


@dataclass(frozen=True)
class _Moment:
    at: float
    fault: Fault
    is_begin: bool


def _moments(faults: list[Fault]) -> list[_Moment]:
    moments = [_Moment(fault.begin, fault, is_begin=True) for fault in faults]
    moments += [_Moment(fault.end, fault, is_begin=False) for fault in faults]
    return sorted(moments, key=lambda moment: moment.at)


def _begin(bench: Bench, fault: Fault) -> None:
    if fault.kind == "broker":
        bench.broker.kill_node(NODE)
        return
    worker = bench.fleet.workers[fault.worker]
    if fault.kind == "probe":
        worker.probe()
    elif fault.kind == "kill":
        worker.kill()
    elif fault.kind == "pause":
        worker.stop()
    else:
        _leave(bench, worker)


def _end(bench: Bench, fault: Fault) -> None:
    if fault.kind == "broker":
        bench.broker.start_node(NODE)
        return
    worker = bench.fleet.workers[fault.worker]
    if fault.kind == "probe":
        return
    if fault.kind == "pause":
        worker.resume()
    elif not worker.is_running:
        worker.start()


def _leave(bench: Bench, worker: Worker) -> None:
    """Without the broker it cannot leave cleanly, and need not; what counts is that it ends."""
    status = worker.leave()
    if status != 0 and bench.broker.alive_nodes():
        bench.fleet.deaths.append(f"{worker.name} was asked to leave and ended with {status}:\n{worker.tail()}")


def _wait_until(bench: Bench, moment: float) -> None:
    while True:
        for worker in bench.fleet.note_deaths():
            worker.start()
        left = moment - time.monotonic()
        if left <= 0:
            return
        time.sleep(min(left, 0.2))
