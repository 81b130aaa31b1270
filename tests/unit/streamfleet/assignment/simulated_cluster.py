"""A group played by hand: processes that do what they are told, copies that catch up, members that come and go."""

from __future__ import annotations

from dataclasses import dataclass, field

from streamfleet.assignment.group_assignment import HIGH_AVAILABILITY, assign
from streamfleet.assignment.slot_memory import SlotTasks
from streamfleet.assignment.snapshot import (
    AssignorSettings,
    GroupAssignment,
    Member,
    MemberAssignment,
    MemberReport,
    Snapshot,
    SubTopologyInfo,
    TaskKey,
)
from streamfleet.assignment.task_assignor import TaskAssignor


@dataclass
class Process:
    """Its threads, and how much of each task's state is on its disk."""

    name: str
    threads: int = 1
    sums: dict[TaskKey, int] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    rack: str | None = None
    sub_topologies: tuple[SubTopologyInfo, ...] | None = None
    plans: dict[str, MemberAssignment] = field(default_factory=dict)
    generations: dict[str, int] = field(default_factory=dict)
    memory: dict[str, SlotTasks] = field(default_factory=dict)

    @property
    def member_ids(self) -> list[str]:
        return [f"{self.name}/{number}" for number in range(self.threads)]


class Cluster:
    """After each rebalance everybody has carried out its plan. Copies catch up when they are given the time."""

    def __init__(
        self,
        sub_topologies: tuple[SubTopologyInfo, ...],
        processes: list[Process],
        ends: dict[TaskKey, int] | None = None,
        assignor: TaskAssignor = HIGH_AVAILABILITY,
        **settings,
    ) -> None:
        self.sub_topologies = sub_topologies
        self.processes = {process.name: process for process in processes}
        self.tasks = [task for info in sub_topologies for task in info.tasks()]
        self.stateful = [task for info in sub_topologies if info.stateful for task in info.tasks()]
        self.ends: dict[TaskKey, int] | None = dict.fromkeys(self.stateful, 1_000_000) if ends is None else ends
        self.assignor = assignor
        self.settings = AssignorSettings(**settings)
        self.racks: dict = {}
        self.restoring: set[TaskKey] = set()
        self.generation = 0
        self.decided = GroupAssignment(members={})
        self.moved: list[TaskKey] = []

    def snapshot(self) -> Snapshot:
        members = tuple(
            self._member(process, member_id) for process in self.processes.values() for member_id in process.member_ids
        )
        return Snapshot(members=members, settings=self.settings, end_offset_sums=self.ends, partition_racks=self.racks)

    def _member(self, process: Process, member_id: str) -> Member:
        plan = process.plans.get(member_id)
        report = MemberReport(
            process_id=process.name,
            topology_hash="h",
            sub_topologies=process.sub_topologies or self.sub_topologies,
            owned=frozenset(plan.active if plan else ()),
            restoring=frozenset(plan.active if plan else ()) & self.restoring,
            standby=frozenset((*plan.standby, *plan.warmup) if plan else ()),
            offset_sums=dict(process.sums),
            transactional_id=member_id,
            tags=process.tags,
            rack=process.rack,
        )
        promised = frozenset(plan.promised if plan else ())
        return Member(
            member_id=member_id,
            report=report,
            generation_id=process.generations.get(member_id, -1),
            promised=promised,
            previous=process.memory.get(member_id, SlotTasks()).active - report.owned,
            previous_standby=process.memory.get(member_id, SlotTasks()).standby - report.standby,
        )

    def rebalance(self) -> GroupAssignment:
        """One generation."""
        before = self.active_places()
        self.decided = assign(self.snapshot(), self.assignor)
        self.generation += 1
        for process in self.processes.values():
            for member_id in process.member_ids:
                plan = process.plans[member_id] = self.decided.members[member_id]
                process.generations[member_id] = self.generation
                process.memory[member_id] = SlotTasks(frozenset(plan.active), frozenset(plan.standby))
                ends = self.ends or {}
                process.sums |= {task: ends[task] for task in plan.active if task in ends}
                for task in (*plan.standby, *plan.warmup):
                    process.sums.setdefault(task, 0)
        after = self.active_places()
        self.moved = [task for task, name in before.items() if after.get(task, name) != name]
        return self.decided

    def settle(self, *, restored: bool = True) -> GroupAssignment:
        """With the follow-ups, which come at once."""
        self.rebalance()
        for _ in range(2):
            if self.decided.follow_up:
                self.rebalance()
        assert not self.decided.follow_up, "the group does not come to rest"
        if restored:
            self.catch_up()
        return self.decided

    def catch_up(self) -> None:
        for process in self.processes.values():
            for plan in process.plans.values():
                for task in (*plan.standby, *plan.warmup):
                    process.sums[task] = (self.ends or {}).get(task, 0)

    def converge(self, rounds: int) -> int:
        """Until nothing waits for a warm-up; the number of rounds it took."""
        for number in range(rounds + 1):
            if self.probe_ms() is None:
                return number
            self.settle()
        raise AssertionError(f"still waiting after {rounds} rounds")

    def restart(self) -> None:
        """All processes start again: members are new, disks are as they were."""
        for process in self.processes.values():
            process.plans.clear()
            process.generations.clear()

    def stop_in_turn(self) -> None:
        """All processes stop one after the other: those that are left get the tasks, for the time they have."""
        stopped = {}
        for name in sorted(self.processes):
            process = stopped[name] = self.processes.pop(name)
            process.plans.clear()
            process.generations.clear()
            if self.processes:
                self.rebalance()
        self.processes = stopped

    def leave(self, name: str) -> None:
        del self.processes[name]

    # --- what became of it ---

    def probe_ms(self) -> int | None:
        told = [plan.next_probe_ms for plan in self.decided.members.values() if plan.next_probe_ms is not None]
        assert len(told) <= 1, "more than one member probes"
        return told[0] if told else None

    def active_places(self) -> dict[TaskKey, str]:
        return {
            task: process.name
            for process in self.processes.values()
            for plan in process.plans.values()
            for task in plan.active
        }

    def copies(self, kind: str) -> dict[TaskKey, list[str]]:
        """Processes by task, of `active`, `standby` or `warmup`."""
        found: dict[TaskKey, list[str]] = {}
        for process in self.processes.values():
            for plan in process.plans.values():
                for task in getattr(plan, kind):
                    found.setdefault(task, []).append(process.name)
        return found

    def thread_loads(self, *, stateful: bool | None = None) -> list[int]:
        wanted = set(self.stateful) if stateful else set(self.tasks)
        return [len(wanted & set(plan.active)) for plan in self.decided.members.values()]
