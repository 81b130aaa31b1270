"""Every error the platform raises on purpose, named by what the catcher should do next.

    FleetError
    ├── TransientError              something is away: try again after retry_after seconds
    │   └── SlowDownError           asked too often, or by too many at once: ask less, later
    └── PermanentError              trying again changes nothing
        ├── InvalidDefinitionError  definitions are wrong: fix the places it names
        ├── InvalidRequestError     a call is wrong: correct it
        ├── NotFoundError           a directory, repository, commit, file, app or operation is not there: name another
        ├── ConflictError           not while things are as they are: look at the state, then decide
        ├── StaleError              decided on something that has changed since: look again
        ├── ConfirmationError       needs a person's explicit word: give it
        ├── UnauthorizedError       no token, or not a good one: bring one
        ├── ForbiddenError          this token may not: ask somebody who may
        ├── InvalidLockError        a topology lock cannot be read: write it anew
        └── CompileError            an app's code did not give a topology: fix the code

A message says, in this order: the fact in lower case, the detail, and after a semicolon what to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class FleetError(Exception):
    """Root of the tree: whatever the platform raises on purpose."""

    def __init__(self, fact: str, *, hint: str | None = None) -> None:
        super().__init__(fact if hint is None else f"{fact}; {hint}")
        self.fact = fact
        self.hint = hint


class TransientError(FleetError):
    """It may work later: a broker, a database or a worker is away."""

    def __init__(self, fact: str, *, hint: str | None = None, retry_after: float = 1.0) -> None:
        super().__init__(fact, hint=hint)
        self.retry_after = retry_after
        """Seconds."""


class SlowDownError(TransientError):
    """A limit of calls, streams or queries at a time is reached."""


class PermanentError(FleetError):
    """It will fail again until somebody changes something."""


class InvalidRequestError(PermanentError):
    """A call that can never be carried out as it is."""


class ConflictError(PermanentError):
    """Another operation runs, or the app is not in a state for this one."""


class StaleError(PermanentError):
    """The caller looked at an older state."""


class ConfirmationError(PermanentError):
    """What cannot be undone wants the app's name, or an approval."""


class UnauthorizedError(PermanentError):
    """Nobody in particular."""


class ForbiddenError(PermanentError):
    """Somebody, but not one who may do this."""


class NotFoundError(PermanentError):
    """What was named is not there."""


class InvalidLockError(PermanentError):
    """A topology lock is no JSON, of an unknown format, or was edited by hand."""


class CompileError(PermanentError):
    """An app's entry point raised, took too long or too much memory, or returned something else."""

    def __init__(self, fact: str, *, hint: str | None = None, traceback_tail: str = "") -> None:
        super().__init__(fact, hint=hint)
        self.traceback_tail = traceback_tail
        """The last frames of the app's own error, for its developer."""


class Place(NamedTuple):
    """Where something is written. Lines and columns count from 1, as editors do; 0: the file as a whole."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing that is wrong with a definition."""

    place: Place
    fact: str
    hint: str | None = None

    def __str__(self) -> str:
        return f"{self.place}: {self.fact}" + ("" if self.hint is None else f"; {self.hint}")


class InvalidDefinitionError(PermanentError):
    """All problems that were found, in the order of their places."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(sorted(set(problems), key=lambda problem: (problem.place, problem.fact)))
        super().__init__("\n".join(map(str, self.problems)))
