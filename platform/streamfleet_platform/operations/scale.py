"""Scale: another number of slots. Slots are added, warm up, and are probed until tasks have moved; or drained and removed.

The number is written down first: a worker that dies while the app scales is started again, or not, by the new number. Slots that
are removed are those of the highest ordinals, so that what stays keeps its identity. Where new slots do not come up, or somebody
calls it off, they are taken away again. So they are where nothing has come closer to the end for `rollout.gate.restoredWithin`:
state may be large and take its time, but a slot that never becomes ready does not keep the app from its next operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from streamfleet_platform.errors import TransientError
from streamfleet_platform.model.operation import OperationKind
from streamfleet_platform.model.phase import Phase
from streamfleet_platform.model.quantities import duration_text
from streamfleet_platform.operations.gates import started_gate, what_lacks
from streamfleet_platform.operations.slots import (
    crashed,
    drain_slot,
    known_slots,
    refuse_held,
    remove_slot,
    start_lost,
    start_slot,
)
from streamfleet_platform.operations.steps import (
    Acts,
    Done,
    OperationType,
    Outcome,
    PlannedStep,
    StepFailedError,
    Waiting,
    per_slot,
)
from streamfleet_platform.operations.work import Work

PROBE_PAUSE_SECONDS = 5.0
"""Between two probing rebalances that this asks for."""


def _check_bounds(work: Work, wanted: int) -> None:
    scale = work.revision().spec.scale
    if not scale.min <= wanted <= scale.max:
        raise StepFailedError(
            f"{wanted} slots are outside of {scale.min} to {scale.max}", hint="change scale.min or scale.max in Git"
        )


def write_number(work: Work) -> Done:
    wanted = int(work.params["slots"])
    before = work.app.slots
    work.change_app(slots=wanted)
    return Done(f"from {before} to {wanted}", {"slots": wanted})


def write_number_back(work: Work) -> Done:
    before = int(work.params["before"])
    work.change_app(slots=before)
    return Done(f"back to {before}", {"slots": before})


def warm_up(work: Work) -> Outcome:
    """New slots are members, and what is to move there has moved. A copy that is ready is not left waiting for a timer."""
    if (why := crashed(work)) is not None:
        raise StepFailedError(why, hint="look at its log; the slots that were there go on")
    start_lost(work)
    if not work.is_fresh:
        return Waiting("looking")
    lacking, warming = what_lacks(work), work.seen.warming
    if lacking is None and not warming:
        return Done("all tasks are where they should be")
    ready = [task.id for task in warming if task.state == "caught_up"]
    told = lacking or f"{len(warming)} warm-ups, {_to_go([task.lag_records for task in warming])}"
    memory = _with_progress(work, told, is_short=lacking is not None and not work.seen.restoring)
    if lacking is None and ready and _may_probe(work):
        probe(work)
        told = f"{len(warming)} warm-ups, {len(ready)} of them ready: asked for a rebalance"
        memory["probed_at"] = work.now.timestamp()
    return Waiting(told, memory)


def _with_progress(work: Work, lacking: str, *, is_short: bool) -> dict[str, Any]:
    """What to remember: when it came closer to the end the last time. StepFailedError: too long ago."""
    memory, now, left = dict(work.step.memory), work.now.timestamp(), _left(work, is_short=is_short)
    if "closest" not in memory or left < tuple(memory["closest"]):
        return memory | {"closest": list(left), "closer_at": now}
    limit_ms = work.target().spec.rollout.gate.restored_within
    if (now - float(memory["closer_at"])) * 1000 > limit_ms:
        raise StepFailedError(
            f"no progress for {duration_text(limit_ms)}: {lacking}", hint="look at the logs of the new slots"
        )
    return memory


def _left(work: Work, *, is_short: bool) -> tuple[int, ...]:
    """How far it is from the end; smaller is closer: slots that are not up, tasks that do not run yet, those of them that do not
    know yet what they lack, the records that the others lack.
    """
    seen = work.seen
    down = work.app.slots - sum(worker.is_up for worker in seen.workers.values())
    lacking = [task.restore_remaining for task in seen.restoring] + [task.lag_records for task in seen.warming]
    known = [records for records in lacking if records is not None]
    return max(down, int(is_short)), len(lacking), len(lacking) - len(known), sum(known)


def _to_go(lags: Sequence[int | None]) -> str:
    known, unknown = sum(lag or 0 for lag in lags), lags.count(None)
    return f"{known} records to go" + (f", and those of {unknown} are not known yet" if unknown else "")


def _may_probe(work: Work) -> bool:
    return work.now.timestamp() - float(work.step.memory.get("probed_at", 0)) >= PROBE_PAUSE_SECONDS


def probe(work: Work) -> int:
    """Ask the leader's worker, or any, for a probing rebalance; the slot that was asked."""
    up = [worker for worker in work.seen.workers.values() if worker.is_up]
    for worker in sorted(up, key=lambda one: (not one.is_leader, one.state.slot)):
        work.world.doors.order(worker.state, "probe")
        return worker.state.slot
    raise TransientError("no worker is up that could be asked for a rebalance")


class Scale(OperationType):
    kind = OperationKind.SCALE
    phase = Phase.SCALING
    acts: ClassVar[Acts] = {
        "write-number": write_number,
        "start-slot": start_slot,
        "warm-up": warm_up,
        "drain-slot": drain_slot,
        "remove-slot": remove_slot,
        "wait-until-well": started_gate,
        "write-number-back": write_number_back,
    }

    def plan(self, work: Work) -> list[PlannedStep]:
        wanted = int(work.params["slots"])
        refuse_held(work)
        _check_bounds(work, wanted)
        if work.app.desired == "stopped":
            return [PlannedStep("write-number")]
        there = known_slots(work)
        new = [slot for slot in range(wanted) if slot not in there]
        return [
            PlannedStep("write-number"),
            *per_slot("start-slot", new),
            *([PlannedStep("warm-up")] if new else []),
            *_without(there, wanted),
            PlannedStep("wait-until-well"),
        ]

    def back(self, work: Work, why: str) -> list[PlannedStep] | None:
        """Only out of growing: a slot that was drained has given its tasks away."""
        before, wanted = work.params.get("before"), int(work.params["slots"])
        if before is None or int(before) >= wanted:
            return None
        if work.app.desired == "stopped":
            return [PlannedStep("write-number-back")]
        return [
            PlannedStep("write-number-back"),
            *_without(known_slots(work), int(before)),
            PlannedStep("wait-until-well"),
        ]


def _without(there: Sequence[int], wanted: int) -> list[PlannedStep]:
    gone = [slot for slot in reversed(there) if slot >= wanted]
    return [step for slot in gone for step in (PlannedStep("drain-slot", slot), PlannedStep("remove-slot", slot))]
