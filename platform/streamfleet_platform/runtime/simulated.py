"""SimulatedRuntime: a Runtime without processes, for tests and benchmarks of what is above. It passes the same contract.

What workers do by themselves is scripted: `end()` lets one end, `lose()` lets its machine restart, `settle()` carries out what was
asked for. A worker starts, and stops, with the next look at it, unless `is_slow`; then only `settle()` moves it on.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from streamfleet_platform.errors import ConflictError, NotFoundError, StaleError, TransientError
from streamfleet_platform.runtime.api import DEFAULT_GRACE_SECONDS, WorkerPhase, WorkerSpec, WorkerState

_MISUSED = 2
_FIRST_PORT = 40_000
_FIRST_PID = 1_000_000

Slot = tuple[str, int]


class SimulatedRuntime:
    """`too_many` ends by itself are a crash loop."""

    def __init__(self, *, is_slow: bool = False, too_many: int = 3) -> None:
        self.is_slow = is_slow
        self.specs: dict[Slot, WorkerSpec] = {}
        self.stored_bytes: dict[Slot, int] = {}
        """What state_bytes() says."""
        self.stored_task_bytes: dict[Slot, dict[str, int]] = {}
        self.calls: list[tuple[str, str, int]] = []
        """What was changed, in order: verb, app, slot."""
        self._states: dict[Slot, WorkerState] = {}
        self._lines: dict[Slot, list[str]] = {}
        self._too_many = too_many
        self._newest_token = 0
        self._started = 0
        self._lock = threading.Lock()

    # a Runtime

    def newest_token(self) -> int:
        return self._newest_token

    def list(self, app: str | None = None) -> Sequence[WorkerState]:
        with self._lock:
            return [self._look(slot) for slot in sorted(self._states) if app is None or slot[0] == app]

    def describe(self, app: str, slot: int) -> WorkerState:
        with self._lock:
            self._must_exist(app, slot)
            return self._look((app, slot))

    def start(self, spec: WorkerSpec, *, token: int) -> WorkerState:
        with self._lock:
            where = (spec.app, spec.slot)
            self._pass("start", where, token)
            former = self._states.get(where)
            if former is not None and former.phase is WorkerPhase.STOPPING:
                raise TransientError(f"slot {spec.slot} of app {spec.app} is stopping", hint="start it then")
            if former is not None and former.phase not in (WorkerPhase.STOPPED, WorkerPhase.LOST):
                if former.digest == spec.digest:
                    return self._look(where)
                if former.is_alive:
                    raise ConflictError(f"slot {spec.slot} of app {spec.app} runs something else", hint="stop it first")
            goes_on = former is not None and former.phase is WorkerPhase.LOST and former.digest == spec.digest
            self.specs[where] = spec
            self._states[where] = self._started_state(spec, former.restarts if former is not None and goes_on else 0)
            return self._states[where]

    def stop(self, app: str, slot: int, *, token: int, grace_seconds: float = DEFAULT_GRACE_SECONDS) -> WorkerState:
        with self._lock:
            self._must_exist(app, slot)
            self._pass("stop", (app, slot), token)
            state = self._states[app, slot]
            if state.phase is not WorkerPhase.STOPPED:
                phase = WorkerPhase.STOPPING if state.is_alive and grace_seconds > 0 else WorkerPhase.STOPPED
                self._put(replace(state, phase=phase, next_start_at=None))
            return self._states[app, slot]

    def kill(self, app: str, slot: int, *, token: int) -> WorkerState:
        return self.stop(app, slot, token=token, grace_seconds=0)

    def logs(self, app: str, slot: int, lines: int) -> str:
        with self._lock:
            self._must_exist(app, slot)
            return "".join(f"{line}\n" for line in self._lines.get((app, slot), [])[-lines:])

    def state_bytes(self, app: str, slot: int) -> int | None:
        return self.stored_bytes.get((app, slot), 0)

    def task_bytes(self, app: str, slot: int) -> Mapping[str, int]:
        return self.stored_task_bytes.get((app, slot), {})

    def remove_state(self, app: str, slot: int, *, token: int) -> None:
        with self._lock:
            self._remove("remove_state", app, slot, token)

    def forget(self, app: str, slot: int, *, token: int) -> None:
        with self._lock:
            self._remove("forget", app, slot, token)
            for held in (self._states, self.specs, self._lines):
                held.pop((app, slot), None)

    # what happens by itself

    def settle(self) -> None:
        """Everything that was begun is done."""
        with self._lock:
            for where in self._states:
                self._move_on(where)

    def end(self, app: str, slot: int, exit_code: int, last_words: str = "") -> None:
        """Its worker ends by itself."""
        with self._lock:
            state = self._states[app, slot]
            self._lines.setdefault((app, slot), []).append(last_words)
            restarts = state.restarts + 1
            if exit_code == _MISUSED:
                phase, again = WorkerPhase.CRASH_LOOP, None
            else:
                phase = WorkerPhase.CRASH_LOOP if restarts >= self._too_many else WorkerPhase.BACK_OFF
                again = datetime.now(UTC) + timedelta(days=1)
            reason = f"exit code {exit_code}: {last_words}"
            self._put(
                replace(
                    state, phase=phase, reason=reason, pid=None, exit_code=exit_code,
                    restarts=state.restarts if again is None else restarts, next_start_at=again,
                )
            )  # fmt: skip

    def lose(self, app: str, slot: int) -> None:
        """Its machine was restarted."""
        with self._lock:
            self._put(replace(self._states[app, slot], phase=WorkerPhase.LOST, pid=None, reason="its process is gone"))

    # within

    def _look(self, where: Slot) -> WorkerState:
        if not self.is_slow:
            self._move_on(where)
        return self._states[where]

    def _move_on(self, where: Slot) -> None:
        state = self._states[where]
        if state.phase is WorkerPhase.STARTING:
            self._put(replace(state, phase=WorkerPhase.RUNNING))
        elif state.phase is WorkerPhase.STOPPING:
            self._put(replace(state, phase=WorkerPhase.STOPPED, pid=None, exit_code=0))

    def _started_state(self, spec: WorkerSpec, restarts: int) -> WorkerState:
        self._started += 1
        return WorkerState(
            spec.app,
            spec.slot,
            WorkerPhase.STARTING,
            spec.digest,
            spec.revision,
            code=spec.code,
            url=f"http://127.0.0.1:{_FIRST_PORT + list(self.specs).index((spec.app, spec.slot))}",
            token="simulated",  # noqa: S106  (opens nothing)
            pid=_FIRST_PID + self._started,
            restarts=restarts,
            started_at=datetime.now(UTC),
        )

    def _put(self, state: WorkerState) -> None:
        if state.phase is WorkerPhase.STOPPED:
            state = replace(state, pid=None)
        self._states[state.app, state.slot] = state

    def _remove(self, verb: str, app: str, slot: int, token: int) -> None:
        self._pass(verb, (app, slot), token)
        if (app, slot) in self._states and self._look((app, slot)).is_alive:
            raise ConflictError(f"slot {slot} of app {app} is not stopped", hint="stop it first")
        self.stored_bytes.pop((app, slot), None)

    def _must_exist(self, app: str, slot: int) -> None:
        if (app, slot) not in self._states:
            raise NotFoundError(f"app {app} has no slot {slot}", hint="list the slots")

    def _pass(self, verb: str, where: Slot, token: int) -> None:
        if token < self._newest_token:
            raise StaleError(
                f"fencing token {token} is older than {self._newest_token}", hint="another server leads now"
            )
        self._newest_token = token
        self.calls.append((verb, *where))
