"""Where tasks are, and how long a warm-up that has caught up waits for its task."""

from __future__ import annotations

import os
import signal
import time

from tests.dagster_lab.fleet import Fleet, until

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


def seconds_until_promoted(fleet: Fleet, app: str, patience: float) -> float:
    """From when a copy is first seen to be ready to when some copy that was has its task."""
    ready: set[Place] = set()

    def is_promoted() -> bool:
        ready.update(ready_copies(fleet, app))
        return bool(ready & actives(fleet, app))

    until(lambda: is_promoted() or ready, "a warm-up to catch up")
    began = time.monotonic()
    until(is_promoted, "it to be promoted", patience)
    return time.monotonic() - began
