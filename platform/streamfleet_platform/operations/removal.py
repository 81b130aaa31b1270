"""The end of an app's things: group, internal topics, local state, files of bootstraps, rows, code that nobody else uses. By
retire.py, and by deploy.py where a first start is called off. Output topics stay: others read them.
"""

from __future__ import annotations

from collections.abc import Sequence

from streamfleet_platform.operations.bootstrap_runs import delete_bootstrap_files
from streamfleet_platform.operations.code_directories import delete_unused
from streamfleet_platform.operations.reset import delete_offsets, fence_from_all, wait_for_empty_group
from streamfleet_platform.operations.slots import drain_slot, remove_slot, stop_slot
from streamfleet_platform.operations.steps import Act, Final, Outcome, PlannedStep, Waiting, per_slot
from streamfleet_platform.operations.topics import delete_topics
from streamfleet_platform.operations.work import Work
from streamfleet_platform.registry import apps


def stopping_steps(slots: Sequence[int]) -> list[PlannedStep]:
    return [*per_slot("drain-slot", slots), *per_slot("stop-slot", slots)]


def removal_steps(slots: Sequence[int]) -> list[PlannedStep]:
    """Of an app whose slots are stopped. The group is deleted only where one of them may have been in it."""
    group = [PlannedStep("wait-for-empty-group"), PlannedStep("delete-offsets")] if slots else []
    return [
        PlannedStep("fence"),
        *group,
        PlannedStep("delete-topics"),
        *per_slot("remove-slot", slots),
        PlannedStep("delete-bootstrap-files"),
        PlannedStep("forget-app"),
    ]


def forget_app(work: Work) -> Outcome:
    """Code that no revision of another app names, then its rows. Its events and operations stay."""
    name = work.app.name

    def used() -> set[str]:
        with work.world.database.read() as session:
            return apps.code_ids(session, but_of=name)

    if not delete_unused(work.world.code, used, work.runtime):
        return Waiting("definitions are being applied, which may need its code")
    return Final("forgotten", write=lambda session: apps.drop_app(session, name))


REMOVAL_ACTS: dict[str, Act] = {
    "drain-slot": drain_slot,
    "stop-slot": stop_slot,
    "fence": fence_from_all,
    "wait-for-empty-group": wait_for_empty_group,
    "delete-offsets": delete_offsets,
    "delete-topics": delete_topics,
    "remove-slot": remove_slot,
    "delete-bootstrap-files": delete_bootstrap_files,
    "forget-app": forget_app,
}
