"""Which runs a call of the bench comes to, in which order and of what size, and about how long they will take."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.bench.peers.runners_built import Runner
from tests.bench.peers.workloads import LONG, LONG_ELSE, SHARES, WORKLOADS

AROUND_SECONDS = 15.0
"""Start, waiting for the idle share, stop and cleaning up."""
FILLED_PER_SECOND = 60_000
CHECKED_PER_SECOND = 200_000


@dataclass(frozen=True)
class Run:
    """`thousands` are those of the input."""

    turn: int
    name: str
    runner: Runner
    thousands: int

    @property
    def topic(self) -> tuple[str, int]:
        return WORKLOADS[self.name].family, self.thousands


def runs(
    runners: Sequence[Runner], workloads: Sequence[str] | None, rounds: int, *, long: bool, most: int | None = None
) -> list[Run]:
    """In turns, so that those that are compared run close together. Without `workloads`: all of them, or those of a long run."""
    names = workloads or list(LONG if long else WORKLOADS)
    return [
        Run(turn, name, runner, WORKLOADS[name].thousands(size))
        for turn in range(rounds)
        for name in names
        for runner in runners
        if name in runner.workloads and (size := size_of(runner, name, long=long, most=most)) is not None
    ]


def size_of(runner: Runner, name: str, *, long: bool, most: int | None = None) -> int | None:
    """Thousands of records; None: this runner has no long form."""
    if long and runner.long is None:
        return None
    size = min(runner.long or 0, LONG.get(name, LONG_ELSE)) if long else runner.thousands
    return min(size, most or size)


def estimates(plan: Sequence[Run], former: Sequence[dict[str, Any]]) -> list[float]:
    """Seconds for each: what this machine took formerly, or a guess per runner. The first to need an input has it filled."""
    seconds, filled = [], set()
    for run in plan:
        records = run.thousands * 1000
        seconds.append(AROUND_SECONDS + records / _rate(run, former) + records / CHECKED_PER_SECOND)
        if run.topic not in filled:
            filled.add(run.topic)
            seconds[-1] += records / FILLED_PER_SECOND
    return seconds


def left(expected: Sequence[float], done: int, elapsed: float) -> float:
    """Seconds, at the pace of those that are done."""
    return sum(expected[done:]) * elapsed / sum(expected[:done])


def _rate(run: Run, former: Sequence[dict[str, Any]]) -> float:
    """Records of the input per second."""
    seen = [
        row["steady"]["rate"]
        for row in former
        if row["workload"] == run.name and row["runner"] == run.runner.name and row.get("steady")
    ]
    # A restore sends its keys and reads them twice before it is measured, so its figure says little about the time of a run.
    if seen and run.name != "R":
        return statistics.median(seen)
    return run.runner.rate * SHARES[WORKLOADS[run.name].family]
