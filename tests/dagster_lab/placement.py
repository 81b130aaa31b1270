"""Where tasks are, and how long a warm-up that has caught up waits for its task."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

from tests.dagster_lab.fleet import Fleet, until

TICK_SECONDS = 12.0
"""From a sensor's tick until a task has moved, where the process of a run starts in three or less."""
_PROCESS_STARTS = 4
"""So many of those it may take where they are slower. The run's own is one; the location that launches it and the workers that
rebalance wait for the same processors.
"""
_RUN_IMPORTS = "import dagster, dagster_streamfleet.verbs"

Place = tuple[str, int]
"""A task and a slot."""


def actives(fleet: Fleet, app: str) -> set[Place]:
    """Tasks that run, with where they do."""
    placement = fleet.app(app).placement
    return {(task.id, task.slot) for task in placement if task.role == "active" and task.state == "running"}


def ready_copies(fleet: Fleet, app: str) -> set[Place]:
    placement = fleet.app(app).placement
    return {(task.id, task.slot) for task in placement if task.role == "warmup" and task.state == "caught_up"}


def until_spread(fleet: Fleet, app: str) -> None:
    """Two tasks on each of two slots."""
    until(lambda: sorted(slot for _, slot in actives(fleet, app)) == [0, 0, 1, 1], "both slots to have tasks", 90)


def interrupt(fleet: Fleet, app: str, slot: int) -> None:
    """Out of the group for a while, as by a network that fails: what it has on disk grows old."""
    (worker,) = [worker for worker in fleet.app(app).workers if worker.slot == slot]
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGSTOP)
    try:
        until(lambda: sorted(where for _, where in actives(fleet, app)) == [1 - slot] * 4, "all tasks to move")
    finally:
        os.kill(worker.pid, signal.SIGCONT)


@dataclass(frozen=True)
class Promotion:
    """How long a slot waited until one of its warm-ups had its task. Seconds."""

    since_return: float
    """From when its worker was back."""
    since_ready: float | None
    """From when a copy was seen to have caught up; None: it had its task before anybody looked."""

    def __str__(self) -> str:
        ready = "before it was seen to have" if self.since_ready is None else f"{self.since_ready:.1f} s after it had"
        return f"{ready} caught up, {self.since_return:.1f} s after its return"


def promotion(fleet: Fleet, app: str, slot: int, patience: float) -> Promotion:
    """Called as soon as the worker is back."""
    began, ready_at = time.monotonic(), None
    while not any(where == slot for _, where in actives(fleet, app)):
        assert time.monotonic() < began + patience, f"waited {patience:g} s for a task to move to slot {slot} of {app}"
        if ready_at is None and any(where == slot for _, where in ready_copies(fleet, app)):
            ready_at = time.monotonic()
        time.sleep(0.1)
    now = time.monotonic()
    return Promotion(now - began, None if ready_at is None else now - ready_at)


def seconds_after_a_tick() -> float:
    """What "within seconds of its tick" is on this machine now: starting a process for the run is most of it."""
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", _RUN_IMPORTS], check=True)
    return max(TICK_SECONDS, _PROCESS_STARTS * (time.monotonic() - began))
