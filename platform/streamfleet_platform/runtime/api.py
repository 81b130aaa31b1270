"""What a runtime is asked to do, and what it says: workers by app and slot. Called by operations/ and reconcile/.

A runtime has no opinion: it starts what it is told to start, keeps that running until it is told to stop, and says how it is.
Nothing waits: start() and stop() begin something, and list() tells how far it is. All calls may be repeated.

What changes something carries the fencing token of the caller's lease. A runtime remembers the newest token it has seen and
refuses older ones with StaleError, so a server that lost its lease without noticing cannot act.

    (nothing) ──start──> STARTING ──> RUNNING ──stop──> STOPPING ──> STOPPED ──start──> ...
                            ^            │ ends by itself                │ forget
                            │            v                               v
                            └──────── BACK_OFF ──> CRASH_LOOP         (nothing)

LOST: it should run, and nobody keeps it running any more (the machine was restarted): start() it again.
"""

from __future__ import annotations

import enum
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol

from streamfleet_platform.model.app_policies import SecretReference, Setting

DEFAULT_GRACE_SECONDS = 25.0
"""As `streamfleet run` has it: a commit and the closing of databases fit into it."""


class WorkerPhase(enum.StrEnum):
    """How a slot's worker is, as the runtime sees it: whether its app is ready, its door says."""

    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    BACK_OFF = "back_off"
    """It ended by itself, and is started again after a pause."""
    CRASH_LOOP = "crash_loop"
    """It ended soon after its start, again and again, or its configuration is wrong; `reason` has its last words."""
    LOST = "lost"


@dataclass(frozen=True)
class WorkerSpec:
    """What one slot is to run. Two that are equal need no restart."""

    app: str
    application_id: str
    slot: int
    """The ordinal: names the static member of the group, the state directory and the port, so a restart moves no task."""
    revision: str
    code: Path
    """The revision's directory."""
    entrypoint: str
    settings: Mapping[str, Setting] = field(default_factory=dict)
    """Of the engine and its clients, by dotted names; `${NAME}` takes a secret. What the slot decides is added by the runtime."""
    secrets: Mapping[str, SecretReference] = field(default_factory=dict)
    """By the name that `settings` use."""
    guarantee: str = "at_least_once"
    standbys: int = 0
    memory_bytes: int = 2 * 2**30
    image: str | None = None
    """With its digest; for runtimes that run images."""

    @property
    def digest(self) -> str:
        """Says whether a worker runs what it should. Has no secret in it."""
        told = {
            "app": self.app,
            "application_id": self.application_id,
            "slot": self.slot,
            "revision": self.revision,
            "entrypoint": self.entrypoint,
            "settings": dict(self.settings),
            "secrets": {name: [where.env, where.file] for name, where in self.secrets.items()},
            "guarantee": self.guarantee,
            "standbys": self.standbys,
            "memory_bytes": self.memory_bytes,
            "image": self.image,
        }
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class WorkerState:
    """One slot's worker, as it is now."""

    app: str
    slot: int
    phase: WorkerPhase
    digest: str
    """Of the WorkerSpec it was started with."""
    revision: str
    reason: str | None = None
    """Why it is not running, in its own last words where there are some."""
    code: Path | None = None
    """The directory that it runs, where there is one: it needs that for as long as it may be started again."""
    url: str | None = None
    """Its door."""
    token: str | None = field(default=None, repr=False)
    """What its door wants to see of those who give orders."""
    pid: int | None = None
    restarts: int = 0
    """By the runtime, because it had ended by itself."""
    exit_code: int | None = None
    """Of its last end; negative: the signal."""
    started_at: datetime | None = None
    """The process that runs now, or the last one."""
    next_start_at: datetime | None = None
    """In a pause between two starts. None in a CRASH_LOOP: it is not started again before it was stopped."""

    @property
    def is_alive(self) -> bool:
        """Whether a process may be there. False: none is, and the slot's state is nobody's."""
        return self.phase not in (WorkerPhase.STOPPED, WorkerPhase.LOST) and not self.has_given_up

    @property
    def has_given_up(self) -> bool:
        return self.phase is WorkerPhase.CRASH_LOOP and self.pid is None and self.next_start_at is None


class Runtime(Protocol):
    """Workers of many apps."""

    def newest_token(self) -> int:
        """Of those that it has seen; 0: none yet."""
        ...

    def list(self, app: str | None = None) -> Sequence[WorkerState]:
        """All slots that were started and not forgotten, by app and slot."""
        ...

    def describe(self, app: str, slot: int) -> WorkerState:
        """NotFoundError: there is no such slot."""
        ...

    def start(self, spec: WorkerSpec, *, token: int) -> WorkerState:
        """Have it run. The same spec again changes nothing, even if its worker has given up: stop it first. A slot that runs
        something else is refused (ConflictError), one that is still stopping too (TransientError).
        """
        ...

    def stop(self, app: str, slot: int, *, token: int, grace_seconds: float = DEFAULT_GRACE_SECONDS) -> WorkerState:
        """SIGTERM, and SIGKILL after the grace period. It stays a static member of its group until the session is over: to have
        others take over at once, drain it through its door before.
        """
        ...

    def kill(self, app: str, slot: int, *, token: int) -> WorkerState:
        """At once, without a last commit."""
        ...

    def logs(self, app: str, slot: int, lines: int) -> str:
        """The last lines of what its workers wrote, secrets masked."""
        ...

    def state_bytes(self, app: str, slot: int) -> int | None:
        """What its stores take on disk; None: not known."""
        ...

    def task_bytes(self, app: str, slot: int) -> Mapping[str, int]:
        """The same by task, named by the content id of its sub-topology and its partition (`5f0c..._3`); empty: not known."""
        ...

    def remove_state(self, app: str, slot: int, *, token: int) -> None:
        """Delete the slot's local state. ConflictError while a process may use it. A slot that is not there has none."""
        ...

    def forget(self, app: str, slot: int, *, token: int) -> None:
        """Delete everything of a slot: state, logs, its place in the list. ConflictError while a process may use it."""
        ...
