"""What a change of a topology means for an app that runs: how it can be brought out, and what becomes of its state.

Made by lock_diff.py and the modules beside it, read by whoever plans an upgrade. Verdicts are ordered by weight; that of a whole is
that of its heaviest change.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Verdict(enum.IntEnum):
    """The least that has to be done."""

    UNCHANGED = 0
    ROLLING = 1
    """Workers are replaced one by one; both versions run side by side for a while."""
    RESTART = 2
    """Additive, not rolling: stop all workers, start all. Local directories are taken over by store name."""
    MIGRATE = 3
    """Not rolling, and nothing carries the state over: it is built anew from the inputs, or by a bootstrap from data at rest."""
    INCOMPATIBLE = 4
    """The old state cannot be used: a new generation, or a reset; a bootstrap may fill it."""


@dataclass(frozen=True)
class Change:
    """One difference, what it means, and why."""

    what: str
    """The kind of change, in a few fixed words: for tools."""
    subject: str
    verdict: Verdict
    reason: str
    """For people: what happens, and what to do about it."""
    lost_state: tuple[str, ...] = ()
    """Stores whose content is gone if nothing is done about it."""
    is_warning: bool = False
    """Allowed, but somebody should look."""

    def __str__(self) -> str:
        mark = "!" if self.is_warning or self.lost_state else " "
        return f"{mark} {self.verdict.name:12} {self.what} {self.subject}: {self.reason}"


@dataclass(frozen=True)
class LockDiff:
    """All differences of two locks, heaviest first."""

    changes: tuple[Change, ...]
    topics_created: tuple[str, ...] = ()
    """Internal topics that only the new version has, without the application id."""
    topics_orphaned: tuple[str, ...] = ()
    """Internal topics that only the old version has: candidates for deletion, never deleted by this alone."""

    @property
    def verdict(self) -> Verdict:
        return max((change.verdict for change in self.changes), default=Verdict.UNCHANGED)

    @property
    def lost_state(self) -> tuple[str, ...]:
        return tuple(sorted({store for change in self.changes for store in change.lost_state}))

    @property
    def warnings(self) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.is_warning)

    def lines(self) -> list[str]:
        """For people: the verdict, then every change."""
        lost = f"; the state of {', '.join(self.lost_state)} is lost" if self.lost_state else ""
        return [f"{self.verdict.name}{lost}", *map(str, self.changes)]
