"""Probe: warm-ups that have caught up get their tasks now, and not when the leader's timer fires."""

from __future__ import annotations

from typing import ClassVar

from streamfleet_platform.model.operation import OperationKind
from streamfleet_platform.operations.scale import probe
from streamfleet_platform.operations.slots import refuse_held
from streamfleet_platform.operations.steps import (
    Acts,
    Done,
    OperationType,
    Outcome,
    PlannedStep,
    StepFailedError,
    Waiting,
)
from streamfleet_platform.operations.work import Work

ROUNDS = 5


ROUND_SECONDS = 10.0


def find_ready(work: Work) -> Outcome:
    if not work.is_fresh:
        return Waiting("looking")
    ready = sorted(f"{task.id}@{task.slot}" for task in work.seen.warming if task.state == "caught_up")
    return Done(f"{len(ready)} warm-ups are ready", {"ready": ready})


def ask_until_moved(work: Work) -> Outcome:
    """Asked again after a while; after some rounds without effect somebody should look."""
    ready = set(work.operation.result.get("ready", ()))
    if not ready:
        return Done("nothing is ready, nobody was asked")
    if not work.is_fresh:
        return Waiting("looking")
    active = {f"{task.id}@{task.slot}" for task in work.seen.active}
    moved = sorted(ready & active)
    if moved:
        return Done(f"moved: {', '.join(moved)}", {"moved": moved})
    if not any(f"{task.id}@{task.slot}" in ready for task in work.seen.warming):
        return Done("what was ready is no longer wanted there")
    rounds, asked_at = int(work.step.memory.get("rounds", 0)), float(work.step.memory.get("asked_at", 0))
    if work.now.timestamp() - asked_at < ROUND_SECONDS:
        return Waiting(f"asked {rounds} times, nothing has moved yet")
    if rounds >= ROUNDS:
        raise StepFailedError(
            f"{rounds} rebalances moved none of {', '.join(sorted(ready))}", hint="look at the leader's log"
        )
    slot = probe(work)
    return Waiting(f"slot {slot} was asked", {"rounds": rounds + 1, "asked_at": work.now.timestamp()})


class Probe(OperationType):
    kind = OperationKind.PROBE
    acts: ClassVar[Acts] = {"find-ready": find_ready, "ask-until-moved": ask_until_moved}

    def plan(self, work: Work) -> list[PlannedStep]:
        refuse_held(work)
        return [PlannedStep("find-ready"), PlannedStep("ask-until-moved")]
