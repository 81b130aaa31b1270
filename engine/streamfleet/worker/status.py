"""What a worker answers when asked how it is: alive, ready, and everything it knows. Pure functions of an ObservedApp.

alive   its threads make steps; if not, a restart may help
ready   it is a member of its group and all its tasks run; if not, waiting helps
"""

from __future__ import annotations

import os
from typing import Any

import msgspec

from streamfleet.kafka_streams.states import ClientState
from streamfleet.thread.thread_status import TaskStatus, ThreadStatus
from streamfleet.worker.observed_app import ObservedApp

_WHY_NOT_READY = {
    ClientState.CREATED: "not started yet: topics are being checked",
    ClientState.PENDING_SHUTDOWN: "shutting down",
    ClientState.NOT_RUNNING: "stopped",
    ClientState.PENDING_ERROR: "failing",
    ClientState.ERROR: "failed",
}


class Judgement(msgspec.Struct, frozen=True):
    """The answer to a yes-or-no question, with its reason."""

    ok: bool
    state: str
    reason: str


def liveness(app: ObservedApp) -> Judgement:
    """A thread without a step for max.poll.interval.ms has lost its place in the group, and does not come back by itself."""
    limit_ms = app.config.max_poll_interval_ms
    if app.failure is not None:
        return Judgement(False, app.state.value, f"failed: {app.failure}")
    if app.state in (ClientState.REBALANCING, ClientState.RUNNING):
        for thread in app.threads():
            age_ms = app.step_age_ms(thread)
            if age_ms > limit_ms:
                return Judgement(
                    False, app.state.value, f"stream thread {thread.name} has made no step for {age_ms // 1000} s"
                )
    return Judgement(True, app.state.value, "alive")


def readiness(app: ObservedApp) -> Judgement:
    state = app.state
    if state is ClientState.RUNNING:
        return Judgement(True, state.value, "all tasks are running")
    reason = _WHY_NOT_READY.get(state) or _rebalancing_reason(app.threads())
    if state is ClientState.CREATED and app.waits_for_broker is not None:
        reason = f"not started yet: waiting for the broker: {app.waits_for_broker}"
    if app.failure is not None:
        reason = f"{reason}: {app.failure}"
    return Judgement(False, state.value, reason)


def _rebalancing_reason(threads: list[ThreadStatus]) -> str:
    full = next((thread.waits_for_disk for thread in threads if thread.waits_for_disk is not None), None)
    if full is not None:
        return f"waiting for room on the disk: {full}"
    waiting = sum(thread.phase in ("created", "starting") for thread in threads)
    tasks = [task for thread in threads for task in thread.tasks if task.phase != "running"]
    left = sum(task.restore.remaining_records for task in tasks if task.restore is not None)
    if tasks:
        return f"restoring {len(tasks)} tasks, {left} records left"
    return f"waiting for the group's plan ({waiting} of {len(threads)} threads have none)" if waiting else "rebalancing"


def full_status(app: ObservedApp) -> dict[str, Any]:
    """Everything, as JSON: documented in docs/worker.md."""
    threads = app.threads()
    return {
        **app.identity(),
        "version": app.version,
        "pid": os.getpid(),
        "processing_guarantee": app.config.processing_guarantee,
        "started_at_ms": app.started_at_ms,
        "state": app.state.value,
        "state_age_ms": app.state_age_ms,
        "ready": msgspec.to_builtins(readiness(app)),
        "paused": app.is_paused,
        "restore_rate_bytes_per_second": app.restore_rate_bytes_per_second,
        "failure": None if app.failure is None else _failure(app.failure),
        "rebalances": sum(counts.rebalances for counts in app.thread_counts()),
        "dropped_records": app.dropped_records(),
        "restore": _total_restore([task for thread in threads for task in thread.tasks]),
        "threads": [_thread(app, thread) for thread in threads],
    }


def _failure(error: Exception) -> dict[str, str]:
    return {"error": type(error).__name__, "message": str(error)}


def _thread(app: ObservedApp, thread: ThreadStatus) -> dict[str, Any]:
    told = {name: value for name, value in msgspec.to_builtins(thread).items() if name != "written_at_ms"}
    return {**told, "last_step_age_ms": app.step_age_ms(thread)}


def _total_restore(tasks: list[TaskStatus]) -> dict[str, Any]:
    """Tasks of a thread are restored together, so the slowest says when all are done."""
    restores = [task.restore for task in tasks if task.restore is not None]
    etas = [restore.eta_seconds for restore in restores]
    sizes = [restore.remaining_bytes for restore in restores]
    known = [eta for eta in etas if eta is not None]
    return {
        "tasks": len(restores),
        "remaining_records": sum(restore.remaining_records for restore in restores),
        "remaining_bytes": None if None in sizes else sum(size or 0 for size in sizes),
        "records_per_second": sum(restore.records_per_second or 0.0 for restore in restores),
        "eta_seconds": max(known, default=None) if len(known) == len(etas) else None,
    }
