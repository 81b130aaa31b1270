"""Deploy: an app's first start. Check the cluster, make its topics, start its slots in their order, wait until they are well.

One that fails is left as it is, for somebody to look at. One that is called off is taken back whole: what it made is deleted, and
the app is as if it had never been applied.
"""

from __future__ import annotations

from typing import ClassVar

from streamfleet_platform.model.operation import OperationKind
from streamfleet_platform.operations.gates import remember_revision, started_gate
from streamfleet_platform.operations.removal import REMOVAL_ACTS, removal_steps, stopping_steps
from streamfleet_platform.operations.slots import known_slots, start_slot
from streamfleet_platform.operations.steps import Acts, OperationType, PlannedStep, per_slot
from streamfleet_platform.operations.topics import check_cluster, create_topics
from streamfleet_platform.operations.work import Work


class Deploy(OperationType):
    kind = OperationKind.DEPLOY
    acts: ClassVar[Acts] = {
        **REMOVAL_ACTS,
        "check-cluster": check_cluster,
        "create-topics": create_topics,
        "start-slot": start_slot,
        "wait-until-well": started_gate,
        "remember-revision": remember_revision,
    }

    def plan(self, work: Work) -> list[PlannedStep]:
        slots = range(work.app.slots) if work.app.desired != "stopped" else ()
        return [
            PlannedStep("check-cluster"),
            PlannedStep("create-topics"),
            *per_slot("start-slot", slots),
            PlannedStep("wait-until-well"),
            PlannedStep("remember-revision"),
        ]

    def undo(self, work: Work) -> list[PlannedStep] | None:
        there = known_slots(work)
        return [*stopping_steps(there), *removal_steps(there)]
