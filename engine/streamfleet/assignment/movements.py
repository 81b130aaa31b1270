"""What of the ideal can be done now, and what has to be made ready first.

Used by high_availability.py. For each stateful task whose ideal process is not ready, in this order:
- whoever runs it goes on running it
- a standby that is ready runs it
- somebody else who is ready runs it, the least busy first
- whoever is least behind runs it, if that makes a difference
and the ideal process gets a copy, so that it can have the task later. Where the task is run by a process that should have
its standby, the two change places. Otherwise the copy is one more than the app asked for, and counts towards
`max.warmup.replicas`; without any left the task waits for a later round. Copies that were begun come first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streamfleet.assignment.placing import lag_of
from streamfleet.assignment.snapshot import TaskKey
from streamfleet.assignment.task_assignor import ApplicationState


class Movements:
    def __init__(self, state: ApplicationState, standbys: Mapping[TaskKey, set[str]]) -> None:
        """`standbys`: where they should be."""
        self._state = state
        self._budget = state.settings.max_warmup_replicas if state.lags_known else 0
        self._counts = dict.fromkeys(state.processes, 0)
        self._holders: dict[TaskKey, list[str]] = {}
        for name, process in state.processes.items():
            for task in process.lags:
                self._holders.setdefault(task, []).append(name)
        self._runners = {task: name for name, process in state.processes.items() for task in process.ready}
        self.active: dict[TaskKey, str] = {}
        self.standbys = {task: set(names) for task, names in standbys.items()}
        self.warmups: dict[TaskKey, set[str]] = {}
        self.waiting = False
        """Whether something is to be looked at again when copies are ready."""

    def in_order(self, ideal: Mapping[TaskKey, str]) -> Iterator[tuple[TaskKey, str]]:
        """First what needs no decision, then what was begun, what is least behind, and the rest."""
        waits: list[tuple[bool, int, TaskKey, str]] = []
        for task, name in ideal.items():
            process = self._state.processes[name]
            if self._state.is_ready(process, task):
                yield task, name
            else:
                waits.append((task not in process.standby, self._lag(name, task), task, name))
        for _, _, task, name in sorted(waits):
            yield task, name

    def decide(self, task: TaskKey, ideal: str) -> None:
        """Who runs the task for now."""
        ready = self._state.is_ready(self._state.processes[ideal], task)
        now = ideal if ready else self._stand_in(task, ideal)
        self.active[task] = now
        self._counts[now] += 1
        if now == ideal:
            return
        self.waiting = True
        if now in self.standbys[task]:
            self.standbys[task].discard(now)
            self._warm_up(task, ideal)
        elif self._budget > 0:
            self._budget -= 1
            self._warm_up(task, ideal)

    def decide_standbys(self) -> None:
        """The same for standbys: whoever has one that is better keeps it until the other is ready."""
        for task in sorted(self.standbys):
            for ideal in sorted(self.standbys[task]):
                if self._state.is_ready(self._state.processes[ideal], task):
                    continue
                if (keeper := self._standby_keeper(task, ideal)) is None:
                    continue
                self.waiting = True
                self.standbys[task].remove(ideal)
                self.standbys[task].add(keeper)
                if self._budget > 0:
                    self._budget -= 1
                    self._warm_up(task, ideal)

    def _stand_in(self, task: TaskKey, ideal: str) -> str:
        """The best one to run the task while its ideal process is not ready; that one itself if nobody has more of it."""
        state = self._state
        if (runner := self._runners.get(task)) is not None and task.content_id in state.processes[runner].can_run:
            return runner
        able = [name for name in self._holders.get(task, ()) if task.content_id in state.processes[name].can_run]
        if ready := [name for name in able if state.is_ready(state.processes[name], task)]:
            return min(ready, key=lambda name: (name not in self.standbys[task], self._load(name), name))
        # For less than what is acceptable at any time it is not worth going elsewhere and coming back.
        behind = self._lag(ideal, task) - state.settings.acceptable_recovery_lag
        better = [name for name in able if self._lag(name, task) < behind]
        return min(better, key=lambda name: (self._lag(name, task), name), default=ideal)

    def _standby_keeper(self, task: TaskKey, ideal: str) -> str | None:
        state, behind = self._state, self._lag(ideal, task)
        taken = {self.active[task], *self.standbys[task], *self.warmups.get(task, ())}
        better = [
            name
            for name in self._holders.get(task, ())
            if name not in taken and task.content_id in state.processes[name].can_run and self._lag(name, task) < behind
        ]
        return min(
            better,
            key=lambda name: (not state.is_ready(state.processes[name], task), self._lag(name, task), name),
            default=None,
        )

    def _warm_up(self, task: TaskKey, name: str) -> None:
        self.warmups.setdefault(task, set()).add(name)

    def _lag(self, name: str, task: TaskKey) -> int:
        return lag_of(self._state, self._state.processes[name], task)

    def _load(self, name: str) -> float:
        return self._counts[name] / self._state.processes[name].threads
