"""What an operation is made of: planned steps, acts that carry them out, and what an act answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from sqlalchemy.orm import Session

from streamfleet_platform.errors import PermanentError
from streamfleet_platform.model.operation import OperationKind
from streamfleet_platform.model.phase import Phase
from streamfleet_platform.operations.work import Work


@dataclass(frozen=True)
class PlannedStep:
    """A step to come: the name of an act, and the slot it is about."""

    act: str
    slot: int | None = None


@dataclass(frozen=True)
class Done:
    """It is as the step wants it."""

    detail: str = ""
    result: Mapping[str, Any] = field(default_factory=dict)
    """Added to the operation's result."""


@dataclass(frozen=True)
class Final(Done):
    """Done, and the operation is over: in one transaction with `write`. For a step after which there is no app left."""

    write: Callable[[Session], None] = field(kw_only=True)


@dataclass(frozen=True)
class Waiting:
    """Not yet; ask again in the next pass."""

    reason: str
    memory: Mapping[str, Any] | None = None
    """What to remember until then; None: as before."""


Outcome = Done | Waiting
Act = Callable[[Work], Outcome]
"""Idempotent: it is called again after a crash, and in every pass while it is Waiting. TransientError: the same later;
PermanentError: the step has failed.
"""

Acts = Mapping[str, Act]
"""By the name a step has."""


class StepFailedError(PermanentError):
    """A step can never be done: compensate, or leave it to a person."""


class OperationType(ABC):
    """One kind of operation."""

    kind: ClassVar[OperationKind]
    phase: ClassVar[Phase | None] = None
    """What the app is in while it runs; None: as observed."""
    acts: ClassVar[Acts]

    @abstractmethod
    def plan(self, work: Work) -> list[PlannedStep]:
        """What to do, as things are now. Recorded, and not planned again."""

    def back(self, work: Work, why: str) -> list[PlannedStep] | None:
        """How to undo what was done when a step has failed; None: leave it to a person."""
        return None

    def undo(self, work: Work) -> list[PlannedStep] | None:
        """The same when somebody has called it off; None: it cannot be undone, or not any more."""
        return self.back(work, "called off")


def per_slot(act: str, slots: Iterable[int]) -> list[PlannedStep]:
    return [PlannedStep(act, slot) for slot in slots]
