"""What can happen to a worker at a named point of the engine: `NAME:ACTION:NTH`, for the n-th time that the point is reached.

    kill      the process ends as by kill -9
    stop      it stops as by SIGSTOP, until somebody continues it
    raise     the step fails with an error that the engine does not know
    lost      the step fails as if the coordinator had lost the transaction; the tasks stay
    late_end  (before_end_txn only) the end of the transaction is delayed in the network: the caller hears nothing and gives up
    arrive    ... and now, however much later, the request reaches the coordinator

Used by worker.py. Every hit that acts leaves a line in the worker's log.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from streamfleet.errors import StreamsError
from streamfleet.failpoints import FAILPOINTS
from streamfleet.kafka.errors import TransactionAbortableError

log = structlog.get_logger(__name__)

ACTIONS = ("kill", "stop", "raise", "lost", "late_end", "arrive")


@dataclass(frozen=True)
class FailpointSpec:
    name: str
    action: str
    nth: int

    @classmethod
    def parse(cls, text: str) -> FailpointSpec:
        name, action, nth = text.split(":")
        if name not in FAILPOINTS or action not in ACTIONS:
            raise ValueError(f"no such failpoint or action: {text}")
        return cls(name, action, int(nth))

    def __str__(self) -> str:
        return f"{self.name}:{self.action}:{self.nth}"


class InjectedError(StreamsError):
    """What the action `raise` raises."""


class ActingFailpoints:
    """Implements Failpoints."""

    def __init__(self, specs: list[FailpointSpec]) -> None:
        self._specs = specs
        self._hits: dict[str, int] = {}
        self.end_is_late = False
        """The next end of a transaction is to be delayed."""
        self.delayed_ends: list[Callable[[], None]] = []
        """Requests on their way; called when they arrive."""

    def hit(self, name: str) -> None:
        hits = self._hits[name] = self._hits.get(name, 0) + 1
        for spec in self._specs:
            if spec.name == name and spec.nth == hits:
                log.warning("failpoint acts", failpoint=str(spec))
                self._act(spec)

    def _act(self, spec: FailpointSpec) -> None:
        if spec.action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif spec.action == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        elif spec.action == "raise":
            raise InjectedError(f"failpoint {spec}")
        elif spec.action == "lost":
            raise TransactionAbortableError(f"failpoint {spec}")
        elif spec.action == "late_end":
            self.end_is_late = True
        else:
            self.delayed_ends.pop()()
