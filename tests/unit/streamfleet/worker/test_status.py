import msgspec
import pytest

from streamfleet.errors import StreamsError
from streamfleet.kafka_streams.states import ClientState
from streamfleet.thread.thread_status import InputStatus, RestoreStatus, TaskStatus, ThreadStatus
from streamfleet.worker.status import full_status, liveness, readiness

NOW_MS = 1_000_000


def running_task(number=0):
    return TaskStatus(f"0_{number}", "running", 10, (InputStatus("words", number, 5, 2),), None)


def restoring_task(number, remaining, rate):
    eta = None if rate is None else remaining / rate
    return TaskStatus(f"1_{number}", "restoring", 0, (), RestoreStatus(remaining, 1, rate, eta, 20 * remaining))


def thread(*tasks, phase="running", written_at_ms=NOW_MS):
    return ThreadStatus("shop-0", phase, written_at_ms, tasks)


def test_a_running_app_is_alive_and_ready(app, streams):
    streams.state, streams.statuses = ClientState.RUNNING, [thread(running_task())]
    assert liveness(app).ok
    assert readiness(app).ok


@pytest.mark.parametrize("state", [state for state in ClientState if state is not ClientState.RUNNING])
def test_any_other_state_is_not_ready_and_says_why(app, streams, state):
    streams.state = state
    judged = readiness(app)
    assert not judged.ok
    assert judged.state == state.value
    assert judged.reason


def test_a_broker_that_does_not_answer_at_the_start_is_the_reason_for_not_being_ready(app, streams):
    streams.waits_for_broker = "listing topics, for 12 s so far (_TRANSPORT)"
    assert readiness(app).reason == (
        "not started yet: waiting for the broker: listing topics, for 12 s so far (_TRANSPORT)"
    )
    streams.state = ClientState.REBALANCING  # what it asks later is no reason
    assert "broker" not in readiness(app).reason


def test_a_restore_is_the_reason_for_not_being_ready(app, streams):
    streams.state = ClientState.REBALANCING
    streams.statuses = [
        thread(running_task(), restoring_task(0, 70, 10.0), restoring_task(1, 30, None), phase="assigned")
    ]
    assert readiness(app).reason == "restoring 2 tasks, 100 records left"


def test_a_full_disk_is_the_reason_for_not_being_ready(app, streams):
    streams.state = ClientState.REBALANCING
    full = "cannot write the database at shop/aa_0"
    streams.statuses = [ThreadStatus("shop-0", "assigned", NOW_MS, waits_for_disk=full)]
    assert readiness(app).reason == f"waiting for room on the disk: {full}"


def test_a_thread_that_makes_no_step_is_not_alive(app, streams, clock):
    streams.state, streams.statuses = ClientState.RUNNING, [thread()]
    clock.advance(streams.config.max_poll_interval_ms)
    assert liveness(app).ok
    clock.advance(1)
    assert not liveness(app).ok
    assert "shop-0 has made no step for 300 s" in liveness(app).reason


def test_an_app_that_could_not_start_is_not_alive(app):
    app.on_start_failure(StreamsError("no such topic"))
    assert not liveness(app).ok
    assert "no such topic" in readiness(app).reason


def test_the_full_status_is_json_with_threads_tasks_and_restore(app, streams, clock):
    streams.state = ClientState.REBALANCING
    app.on_state(ClientState.REBALANCING)
    streams.statuses = [
        thread(running_task(), restoring_task(0, 70, 10.0), restoring_task(1, 30, 10.0), phase="assigned")
    ]
    clock.advance(1500)
    status = msgspec.json.decode(msgspec.json.encode(full_status(app)))
    assert status["state"] == "rebalancing"
    assert status["state_age_ms"] == 1500
    assert status["restore"] == {
        "tasks": 2,
        "remaining_records": 100,
        "remaining_bytes": 2000,
        "records_per_second": 20.0,
        "eta_seconds": 7.0,
    }
    [told] = status["threads"]
    assert told["last_step_age_ms"] == 1500
    assert told["tasks"][0]["inputs"] == [
        {"topic": "words", "partition": 0, "position": 5, "lag_records": 2, "committed": None}
    ]
    assert told["tasks"][1]["restore"]["remaining_records"] == 70


def test_without_a_rate_of_every_restore_there_is_no_estimate(app, streams):
    streams.statuses = [thread(restoring_task(0, 70, 10.0), restoring_task(1, 30, None))]
    assert full_status(app)["restore"]["eta_seconds"] is None


def test_a_failure_is_told_by_kind_and_sentence(app, streams):
    streams.state, streams.failure = ClientState.ERROR, StreamsError("it broke", hint="mend it")
    assert full_status(app)["failure"] == {"error": "StreamsError", "message": "it broke; mend it"}
