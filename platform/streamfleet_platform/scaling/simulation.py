"""Who would run what with another number of slots: the engine's own assignor is asked, as often as it takes to come to rest.

Called by decision.py. Slots that stay report what they have; those with the highest ordinals are the ones that leave. Warm-ups
are taken for caught up at the next round, so the result is where the group ends, not where it passes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import streamfleet
from streamfleet_platform.scaling.measures import Measures, Task

Placement = dict[int, frozenset[Task]]

_FULL = 1_000_000_000
"""What a changelog holds, as an offset: far more than any acceptable lag, so that a copy is either complete or of no use."""


def effective_steps(tasks: int, low: int, high: int) -> Iterator[int]:
    """Numbers of slots at which the fullest slot gets one task fewer; between them more slots bring nothing."""
    for slots in range(max(1, low), min(high, tasks) + 1):
        if slots == 1 or -(-tasks // slots) < -(-tasks // (slots - 1)):
            yield slots


def simulate(measures: Measures, slots: int, standbys: int = 0) -> Placement:
    """The active tasks of each slot."""
    simulation = _Simulation(measures, slots, standbys)
    for _ in range(len(measures.tasks) + 10):
        if simulation.step():
            return simulation.placement()
    raise AssertionError("the assignor does not come to rest")


class _Simulation:
    def __init__(self, measures: Measures, slots: int, standbys: int) -> None:
        engine = streamfleet.assignment
        self._infos = tuple(
            engine.SubTopologyInfo(content_id, dict(part.sources), part.stateful)
            for content_id, part in sorted(measures.sub_topologies.items())
        )
        stateful = {content_id for content_id, part in measures.sub_topologies.items() if part.stateful}
        self._ends = {task: _FULL for task in measures.tasks if task.content_id in stateful}
        # All warm-ups at once: how many there may be decides how long it takes, not where it ends.
        self._settings = engine.AssignorSettings(
            num_standby_replicas=standbys, max_warmup_replicas=max(1, len(self._ends))
        )
        self._slots = range(slots)
        self._owned = {slot: measures.placement.get(slot, frozenset()) for slot in self._slots}
        self._copies = {
            slot: frozenset(task for task, holders in measures.copies.items() if slot in holders)
            for slot in self._slots
        }
        self._promised: dict[int, frozenset[Task]] = dict.fromkeys(self._slots, frozenset())

    def step(self) -> bool:
        """One rebalance; True if nothing is left to be done."""
        answer = streamfleet.assignment.assign(
            streamfleet.assignment.Snapshot(
                members=tuple(self._member(slot) for slot in self._slots),
                settings=self._settings,
                end_offset_sums=self._ends,
            )
        )
        plans = {slot: answer.members[_name(slot)] for slot in self._slots}
        owned = {slot: frozenset(plan.active) for slot, plan in plans.items()}
        is_over = owned == self._owned and not answer.follow_up and not any(plan.warmup for plan in plans.values())
        self._owned = owned
        self._promised = {slot: frozenset(plan.promised) for slot, plan in plans.items()}
        self._copies = {slot: frozenset((*plan.standby, *plan.warmup)) for slot, plan in plans.items()}
        return is_over

    def placement(self) -> Placement:
        return dict(self._owned)

    def _member(self, slot: int) -> streamfleet.assignment.Member:
        engine = streamfleet.assignment
        owned, copies = self._owned[slot], self._copies[slot] - self._owned[slot]
        report = engine.MemberReport(
            process_id=_name(slot),
            topology_hash="",
            sub_topologies=self._infos,
            owned=owned,
            standby=copies & self._ends.keys(),
            offset_sums={task: _FULL for task in owned | copies if task in self._ends},
        )
        return engine.Member(member_id=_name(slot), report=report, generation_id=1, promised=self._promised[slot])


def _name(slot: int) -> str:
    return f"slot-{slot:04}"


def worst_slot(placement: Mapping[int, frozenset[Task]], loads: Mapping[Task, float]) -> tuple[int, float]:
    """The slot with most to do, and how much that is."""
    return max(
        ((slot, sum(loads.get(task, 0.0) for task in tasks)) for slot, tasks in placement.items()),
        key=lambda entry: (entry[1], -entry[0]),
        default=(0, 0.0),
    )
