"""An operation: a journalled, resumable act of the platform on one app, and the states it and its steps go through.

    PLANNED ──> RUNNING ──> SUCCEEDED
       │           ├──────> FAILED        a step was refused for good; the app is left as the last step left it
       │           └──────> ROLLED_BACK   what it had done was undone: a gate failed, or somebody called it off
       ├──> ASKING ─> PLANNED             a reset from Git that needs a person's word
       └──> CANCELLED

A step is written down before it acts, and again when it is done; a server that is killed in between finds it RUNNING and does
it again, so every step is idempotent.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping


class OperationKind(enum.StrEnum):
    """What can be done to an app."""

    DEPLOY = "deploy"
    SCALE = "scale"
    PROBE = "probe"
    RESET = "reset"
    UPGRADE = "upgrade"
    BOOTSTRAP = "bootstrap"
    START = "start"
    STOP = "stop"
    RETIRE = "retire"


class OperationState(enum.StrEnum):
    """How far it is."""

    PLANNED = "planned"
    ASKING = "asking"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    ROLLED_BACK = "rolled_back"
    CANCELLED = "cancelled"

    @property
    def is_over(self) -> bool:
        return not MOVES[self]


class StepState(enum.StrEnum):
    """How far one step is."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"


MOVES: Mapping[OperationState, frozenset[OperationState]] = {
    OperationState.PLANNED: frozenset({OperationState.RUNNING, OperationState.ASKING, OperationState.CANCELLED}),
    OperationState.ASKING: frozenset({OperationState.PLANNED, OperationState.CANCELLED}),
    OperationState.RUNNING: frozenset({OperationState.SUCCEEDED, OperationState.FAILED, OperationState.ROLLED_BACK}),
    OperationState.SUCCEEDED: frozenset(),
    OperationState.FAILED: frozenset(),
    OperationState.ROLLED_BACK: frozenset(),
    OperationState.CANCELLED: frozenset(),
}
