"""Deploy: an app's first start. Check the cluster, make its topics, start its slots in their order, wait until they are well."""

from __future__ import annotations

from typing import ClassVar

from streamfleet_platform.model.operation import OperationKind
from streamfleet_platform.operations.gates import started_gate
from streamfleet_platform.operations.slots import start_slot
from streamfleet_platform.operations.steps import Acts, Done, OperationType, PlannedStep, per_slot
from streamfleet_platform.operations.topics import check_cluster, create_topics
from streamfleet_platform.operations.work import Work


def remember_revision(work: Work) -> Done:
    """It ran well: what to go back to."""
    revision = work.target()
    work.change_app(revision=revision.id, good_revision=revision.id)
    return Done(revision.id[:20])


class Deploy(OperationType):
    kind = OperationKind.DEPLOY
    acts: ClassVar[Acts] = {
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
