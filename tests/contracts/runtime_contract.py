"""What every Runtime does. A subclass gives the runtime, says what a slot runs, and lets workers end by themselves."""

import time

import pytest

from streamfleet_platform.errors import ConflictError, NotFoundError, StaleError
from streamfleet_platform.runtime.api import Runtime, WorkerPhase, WorkerSpec, WorkerState

PATIENCE_SECONDS = 20


def until(runtime: Runtime, spec: WorkerSpec, *phases: WorkerPhase) -> WorkerState:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (state := runtime.describe(spec.app, spec.slot)).phase not in phases:
        assert time.monotonic() < deadline, state
        time.sleep(0.02)
    return state


class RuntimeContract:
    """Fixtures of a subclass: `runtime`; `spec(slot=0, revision="r1")`; `end(spec, exit_code, last_words)`; `lose(spec)`."""

    def test_a_started_worker_runs_and_is_listed(self, runtime, spec):
        state = runtime.start(spec(), token=1)
        assert state.phase in (WorkerPhase.STARTING, WorkerPhase.RUNNING)
        running = until(runtime, spec(), WorkerPhase.RUNNING)
        assert running.pid is not None and running.url.startswith("http://127.0.0.1:") and running.is_alive
        assert running.code is None or running.code.name == spec().code.name
        assert [(found.app, found.slot) for found in runtime.list()] == [("orders", 0)]
        assert runtime.list("orders") == runtime.list() and runtime.list("other") == []

    def test_the_same_start_again_changes_nothing(self, runtime, spec):
        runtime.start(spec(), token=1)
        pid = until(runtime, spec(), WorkerPhase.RUNNING).pid
        assert runtime.start(spec(), token=1).pid == pid
        assert runtime.describe("orders", 0).restarts == 0

    def test_a_slot_that_runs_something_else_is_refused(self, runtime, spec):
        runtime.start(spec(), token=1)
        until(runtime, spec(), WorkerPhase.RUNNING)
        with pytest.raises(ConflictError, match="stop it first"):
            runtime.start(spec(revision="r2"), token=1)

    def test_a_stopped_slot_takes_another_revision_and_keeps_its_door(self, runtime, spec):
        runtime.start(spec(), token=1)
        url = until(runtime, spec(), WorkerPhase.RUNNING).url
        runtime.stop("orders", 0, token=1)
        assert until(runtime, spec(), WorkerPhase.STOPPED).pid is None
        runtime.start(spec(revision="r2"), token=1)
        state = until(runtime, spec(), WorkerPhase.RUNNING)
        assert (state.revision, state.url) == ("r2", url)

    def test_stop_and_kill_may_be_repeated(self, runtime, spec):
        runtime.start(spec(), token=1)
        until(runtime, spec(), WorkerPhase.RUNNING)
        runtime.kill("orders", 0, token=1)
        until(runtime, spec(), WorkerPhase.STOPPED)
        assert runtime.kill("orders", 0, token=1).phase is WorkerPhase.STOPPED
        assert runtime.stop("orders", 0, token=1).phase is WorkerPhase.STOPPED

    def test_an_older_token_is_refused_by_everything_that_changes_something(self, runtime, spec):
        assert runtime.newest_token() == 0
        runtime.start(spec(), token=7)
        until(runtime, spec(), WorkerPhase.RUNNING)
        assert runtime.newest_token() == 7
        for change in (
            lambda: runtime.start(spec(), token=6),
            lambda: runtime.stop("orders", 0, token=6),
            lambda: runtime.kill("orders", 0, token=6),
            lambda: runtime.remove_state("orders", 0, token=6),
            lambda: runtime.forget("orders", 0, token=6),
        ):
            with pytest.raises(StaleError, match="leads now"):
                change()
        assert runtime.describe("orders", 0).phase is WorkerPhase.RUNNING
        runtime.stop("orders", 0, token=8)

    def test_a_worker_that_ends_by_itself_is_in_back_off_with_its_last_words(self, runtime, spec, end):
        runtime.start(spec(), token=1)
        until(runtime, spec(), WorkerPhase.RUNNING)
        end(spec(), 1, "error: no such topic")
        state = until(runtime, spec(), WorkerPhase.BACK_OFF)
        assert "error: no such topic" in state.reason
        assert (state.exit_code, state.restarts, state.is_alive) == (1, 1, True)
        assert state.next_start_at is not None

    def test_a_wrong_configuration_is_not_started_again_until_it_was_stopped(self, runtime, spec, end):
        runtime.start(spec(), token=1)
        until(runtime, spec(), WorkerPhase.RUNNING)
        end(spec(), 2, "error: commit.interval.ms is wrong")
        state = until(runtime, spec(), WorkerPhase.CRASH_LOOP)
        assert state.exit_code == 2 and state.next_start_at is None and not state.is_alive
        assert "commit.interval.ms" in state.reason
        assert runtime.start(spec(), token=1).phase is WorkerPhase.CRASH_LOOP
        runtime.stop("orders", 0, token=1)
        until(runtime, spec(), WorkerPhase.STOPPED)
        assert runtime.start(spec(), token=1).phase in (WorkerPhase.STARTING, WorkerPhase.RUNNING)

    def test_a_lost_worker_is_started_again_by_start(self, runtime, spec, lose):
        runtime.start(spec(), token=1)
        pid = until(runtime, spec(), WorkerPhase.RUNNING).pid
        lose(spec())
        assert not until(runtime, spec(), WorkerPhase.LOST).is_alive
        runtime.start(spec(), token=1)
        assert until(runtime, spec(), WorkerPhase.RUNNING).pid != pid

    def test_state_is_removed_only_when_nobody_may_use_it(self, runtime, spec):
        runtime.start(spec(), token=1)
        until(runtime, spec(), WorkerPhase.RUNNING)
        for remove in (runtime.remove_state, runtime.forget):
            with pytest.raises(ConflictError, match="stop it first"):
                remove("orders", 0, token=1)
        runtime.stop("orders", 0, token=1)
        until(runtime, spec(), WorkerPhase.STOPPED)
        runtime.remove_state("orders", 0, token=1)
        assert runtime.state_bytes("orders", 0) == 0
        runtime.forget("orders", 0, token=1)
        assert runtime.list() == []
        runtime.forget("orders", 0, token=1)
        with pytest.raises(NotFoundError, match="no slot 0"):
            runtime.describe("orders", 0)
