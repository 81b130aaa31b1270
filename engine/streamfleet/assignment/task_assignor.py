"""The contract with whoever decides which process runs which task, KIP-924's in Python.

A TaskAssignor gets an ApplicationState and gives a TaskAssignment; group_assignment.py makes the one from the members' reports,
checks the other (validation.py) and carries it out: over the threads of each process, and in two steps where a task moves.
The built-in ones are high_availability.py and sticky.py; an app names its own with `task.assignor.class`, and finds
parts to build it from in building_blocks.py.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from typing import Protocol

import msgspec

from streamfleet.assignment.snapshot import AssignorSettings, TaskKey
from streamfleet.ids import TopicPartition


class TaskInfo(msgspec.Struct, frozen=True):
    """One task of the app."""

    key: TaskKey
    stateful: bool
    sources: tuple[TopicPartition, ...]
    changelogs: tuple[TopicPartition, ...]
    full_lag: int | None
    """What a process that has nothing of its state would have to restore, in offsets; None: not known."""


class ProcessState(msgspec.Struct, frozen=True, kw_only=True):
    """One process of the app: some threads that share a state directory."""

    process_id: str
    threads: int
    can_run: frozenset[str]
    """Content ids of its sub-topologies: all of them, but for the time of a rolling upgrade."""
    active: frozenset[TaskKey] = frozenset()
    """Tasks that it runs, that it was promised, or, if it was only just started, that it ran when it was stopped."""
    standby: frozenset[TaskKey] = frozenset()
    """Standby and warm-up tasks that it runs, or ran when it was stopped."""
    lags: Mapping[TaskKey, int] = {}
    """How far behind the end its state is, for every task it has state of; 0 for tasks that run. Where the end is not known
    these are negative numbers: less is still better."""
    ready: frozenset[TaskKey] = frozenset()
    """Stateful tasks that it runs without anything left to restore, or was promised for that reason."""
    endpoint: str | None = None
    tags: Mapping[str, str] = {}
    rack: str | None = None


class ApplicationState(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to decide, and by what."""

    processes: Mapping[str, ProcessState]
    """By process id, in order."""
    tasks: Mapping[TaskKey, TaskInfo]
    """All tasks that are to run, in order."""
    settings: AssignorSettings
    lags_known: bool = True
    """False: the ends of the changelogs could not be found out, so nobody can say who is ready for what."""
    partition_racks: Mapping[TopicPartition, frozenset[str]] = {}

    def stateful(self) -> Iterator[TaskKey]:
        return (key for key, info in self.tasks.items() if info.stateful)

    def able(self, task: TaskKey) -> Iterator[ProcessState]:
        return (process for process in self.processes.values() if task.content_id in process.can_run)

    def is_ready(self, process: ProcessState, task: TaskKey) -> bool:
        """Whether the process could run the task with no more to restore than is acceptable."""
        if task in process.ready:
            return True
        lag = process.lags.get(task, self.tasks[task].full_lag)
        return self.lags_known and lag is not None and 0 <= lag <= self.settings.acceptable_recovery_lag


class ProcessAssignment(msgspec.Struct, frozen=True, kw_only=True):
    """What one process is to do."""

    active: frozenset[TaskKey] = frozenset()
    standby: frozenset[TaskKey] = frozenset()
    warmup: frozenset[TaskKey] = frozenset()
    """Copies that are made only until the process is ready to have the task."""


class TaskAssignment(msgspec.Struct, frozen=True, kw_only=True):
    """What all are to do."""

    processes: Mapping[str, ProcessAssignment]
    """By process id; every process has an entry."""
    next_probe_ms: int | None = None
    """After which to assign again, because something waits for a process to be ready; None: nothing does."""


class AssignmentError(enum.Enum):
    """What is wrong with a TaskAssignment."""

    NONE = "none"
    ACTIVE_TASK_ASSIGNED_MULTIPLE_TIMES = "an active task is given to more than one process"
    ACTIVE_TASK_NOT_ASSIGNED = "an active task is given to nobody"
    INVALID_STANDBY_TASK = "a stateless task has a standby"
    TWO_COPIES_IN_ONE_PROCESS = "a process has more than one copy of a task"
    MISSING_PROCESS_ID = "a process has no entry"
    UNKNOWN_PROCESS_ID = "a process is not in the group"
    UNKNOWN_TASK_ID = "a task is not one of the app's"
    UNABLE_PROCESS = "a process is given a task that its topology does not have"


class TaskAssignor(Protocol):
    """Decides. Called on the group's leader only, on the thread that keeps its membership: take no longer than needed."""

    def assign(self, state: ApplicationState) -> TaskAssignment: ...

    def on_assignment_computed(self, assignment: TaskAssignment, error: AssignmentError) -> None:
        """Told after each assignment what became of it. With an error the member that leads the group fails, as with an
        exception: the group goes on with another leader.
        """
