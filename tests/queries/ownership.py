"""Who may have answered as the owner of a partition: claims of workers, held against what they logged when they began with tasks.

A position that goes back tells of a former owner at exactly once only: at least once the new owner begins at an older one. But
workers log when a task begins to run there. Who claims to be the owner after another one has begun, and has not begun again, lies.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

SLACK_SECONDS = 1.0
"""A task runs, and may answer, shortly before its line is in the log."""


class Claim(NamedTuple):
    """An answer that says that its worker runs the task. Times are those of the machine's clock, as in logs."""

    worker: str
    partition: int
    asked_at: float
    answered_at: float
    position: int


class Start(NamedTuple):
    """A worker began with a task."""

    worker: str
    partition: int
    at: float


def starts(worker: str, events: Iterable[Mapping[str, Any]]) -> list[Start]:
    """From the log of a worker of an app with one sub-topology."""
    return [
        Start(worker, int(event["task"].partition("_")[2]), datetime.fromisoformat(event["timestamp"]).timestamp())
        for event in events
        if event["event"] == "task running"
    ]


def false_claims(claims: Iterable[Claim], begun: Iterable[Start]) -> list[str]:
    """What claims say that was no longer so, or that went back in time while nobody else had the task."""
    by_partition: dict[int, list[Start]] = {}
    for start in sorted(begun, key=lambda each: each.at):
        by_partition.setdefault(start.partition, []).append(start)
    found: list[str] = []
    answered: dict[tuple[str, int, float], _Answered] = {}
    for claim in sorted(claims, key=lambda each: each.answered_at):
        history = by_partition.get(claim.partition, [])
        latest = claim.answered_at + SLACK_SECONDS
        own = max((each.at for each in history if each.worker == claim.worker and each.at <= latest), default=0.0)
        after = [each for each in history if each.worker != claim.worker and own < each.at <= claim.asked_at]
        if after:
            late = claim.asked_at - after[-1].at
            heir = after[-1].worker
            found.append(f"{claim.worker} says it has {claim.partition}, {late:.3f} s after {heir} began with it")
        before = answered.setdefault((claim.worker, claim.partition, own), _Answered())
        if claim.position < (floor := before.newest(claim.asked_at)):
            found.append(f"{claim.worker} has {claim.partition} at {claim.position}, and had it at {floor} before")
        before.add(claim)
    return found


class _Answered:
    """Of one owner, from one start to the next, in the order of the answers."""

    def __init__(self) -> None:
        self._times: list[float] = []
        self._newest: list[int] = []

    def newest(self, before: float) -> int:
        known = bisect_left(self._times, before)
        return self._newest[known - 1] if known else -1

    def add(self, claim: Claim) -> None:
        self._times.append(claim.answered_at)
        self._newest.append(max(claim.position, self._newest[-1] if self._newest else -1))
