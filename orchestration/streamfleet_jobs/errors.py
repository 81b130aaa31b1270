"""Why a job cannot go on. Each error is one sentence: the fact, the detail, and what to do.

JobError
├─ SpecError           fix the spec
├─ UnavailableError    a broker, a worker or Spark does not answer: run the job again, it goes on where it was
└─ RefusedError        what is asked for would do harm, or cannot be told apart from it: decide, then run again
"""

from __future__ import annotations


class JobError(Exception):
    """The job ends here, with nothing half done."""

    def __init__(self, fact: str, *, hint: str) -> None:
        super().__init__(f"{fact}; {hint}")
        self.fact = fact
        self.hint = hint


class SpecError(JobError):
    """The spec cannot be read, or does not fit what is there."""


class UnavailableError(JobError):
    """Something the job needs does not answer."""


class RefusedError(JobError):
    """The job will not do that."""
