"""`streamfleet run` on the real broker: readiness, status, metrics, signals, exit codes."""

import json
import signal

import pytest

from streamfleet.worker.control_client import WorkerDoor


def test_a_worker_becomes_ready_counts_and_stops_cleanly_on_sigterm(shop):
    shop.create_topics()
    shop.write("to", "be", "or", "not", "to", "be")
    worker = shop.run()
    worker.until_ready()
    shop.counts(lambda found: found == {"to": 2, "be": 2, "or": 1, "not": 1})
    worker.send()
    assert worker.wait() == 0
    assert worker.events()[-1]["event"] == "stopped"


def test_sigterm_commits_what_was_processed_since_the_last_commit(shop):
    shop.create_topics()
    shop.configure(commit_ms=600_000)
    shop.write("once")
    first = shop.run()
    door = first.until_ready()
    first.until(lambda: processed(door) == 2)  # read, and counted behind the repartition topic
    first.send()
    assert first.wait() == 0
    assert shop.counts(lambda found: found) == {"once": 1}
    shop.configure()
    shop.write("twice")
    second = shop.run()
    second.until_ready()
    assert shop.counts(lambda found: "twice" in found) == {"once": 1, "twice": 1}
    second.send(signal.SIGINT)
    assert second.wait() == 0


def processed(door):
    return metric(door, "streamfleet_processed_records_total")


def metric(door, line_start):
    """The sum over all lines that begin like this."""
    lines = [line for line in door.get("/metrics")[1].splitlines() if line.startswith(line_start)]
    return sum(float(line.rpartition(" ")[2]) for line in lines)


def test_a_builder_is_taken_for_its_topology(shop):
    shop.create_topics()
    worker = shop.run(function="in_a_builder")
    worker.until_ready()
    worker.send()
    assert worker.wait() == 0


def test_readiness_says_why_not_while_the_broker_is_away_and_sigterm_ends_it_cleanly(shop):
    shop.configure(servers="127.0.0.1:1")
    worker = shop.run()
    door = worker.door()
    status, body = door.get("/readyz")
    assert status == 503
    assert json.loads(body)["state"] == "created"
    assert door.get("/livez")[0] == 200
    worker.send()
    assert worker.wait() == 0


def test_status_tells_threads_tasks_positions_and_lag(shop):
    shop.create_topics()
    shop.write("a", "b", "c", "d")
    worker = shop.run()
    door = worker.until_ready()
    shop.counts(lambda found: len(found) == 4)

    def processed_all():
        tasks = [task for thread in door.json("/status")["threads"] for task in thread["tasks"]]
        inputs = [each for task in tasks for each in task["inputs"] if each["topic"].endswith("-lines")]
        return sum(each["position"] for each in inputs) == 4 and all(each["lag_records"] == 0 for each in inputs)

    worker.until(processed_all)
    status = door.json("/status")
    assert status["application_id"] == shop.app
    assert status["state"] == "running"
    assert status["failure"] is None
    assert status["restore"]["tasks"] == 0
    [thread] = status["threads"]
    assert thread["phase"] == "running"
    assert thread["last_step_age_ms"] < 5000
    assert {task["id"]: task["phase"] for task in thread["tasks"]} == dict.fromkeys(
        ["0_0", "0_1", "1_0", "1_1"], "running"
    )


def test_metrics_count_what_was_done(shop):
    shop.create_topics()
    shop.write(*["word"] * 50)
    worker = shop.run()
    door = worker.until_ready()
    shop.counts(lambda found: found == {"word": 50})

    def value(line_start):
        lines = [line for line in door.get("/metrics")[1].splitlines() if line.startswith(line_start)]
        return sum(float(line.rpartition(" ")[2]) for line in lines)

    worker.until(
        lambda: metric(door, "streamfleet_processed_records_total") == 100
    )  # read, and counted behind the repartition
    assert metric(door, 'streamfleet_state{state="running"}') == 1
    assert metric(door, 'streamfleet_tasks{phase="running"}') == 4
    assert metric(door, "streamfleet_polled_records_total") == 100
    assert metric(door, "streamfleet_rebalances_total") >= 1
    worker.until(lambda: metric(door, "streamfleet_commit_seconds_count") >= 1)
    assert metric(door, "process_resident_memory_bytes") > 0


def test_lost_local_state_shows_as_restored_records(shop):
    shop.create_topics()
    shop.write(*[f"word-{number}" for number in range(200)])
    first = shop.run(state="first")
    first.until_ready()
    shop.counts(lambda found: len(found) == 200)
    first.send()
    assert first.wait() == 0
    second = shop.run(state="second")
    door = second.until_ready()
    assert metric(door, "streamfleet_restored_records_total") == 200


def test_an_app_that_fails_ends_with_1_and_says_why_without_its_secrets(shop):
    shop.create_topics()
    shop.configure("sasl.password: ${KAFKA_PASSWORD}\n")
    shop.write("poison")
    worker = shop.run()
    assert worker.wait() == 1
    last = worker.log().splitlines()[-1]
    assert last.startswith("error: ")
    assert "read" in last
    assert "ValueError" in worker.log()
    assert "hunter2" not in worker.log()


def test_a_missing_input_topic_ends_with_1_and_names_it(shop):
    worker = shop.run()
    assert worker.wait() == 1
    assert f"{shop.app}-lines" in worker.log().splitlines()[-1]


def test_a_second_worker_on_one_state_directory_is_refused(shop):
    shop.create_topics()
    first = shop.run()
    first.until_ready()
    second = shop.run()
    assert second.wait() == 1
    assert "is in use by another process" in second.log().splitlines()[-1]
    assert first.process.poll() is None


@pytest.mark.parametrize("how", ["second signal", "grace over"])
def test_a_worker_that_cannot_stop_in_time_ends_dirty(shop, how):
    shop.create_topics()
    worker = shop.run("--grace", "2" if how == "grace over" else "50")
    door = worker.until_ready()
    shop.write("slow")
    worker.until(lambda: door.json("/status")["threads"][0]["last_step_age_ms"] > 1000)
    worker.send()
    if how == "second signal":
        worker.until(lambda: any(event["event"] == "shutting down" for event in worker.events()))
        worker.send()
    assert worker.wait(20) == 143
    assert worker.events()[-1]["event"] == "ended without a last commit"


def test_the_door_answers_while_the_stream_thread_is_stuck(shop):
    shop.create_topics()
    shop.configure("max.poll.interval.ms: 1500\n")
    worker = shop.run()
    door = worker.until_ready()
    shop.write("slow")
    worker.until(lambda: door.get("/livez")[0] == 503)
    assert "has made no step for" in door.json("/livez")["reason"]


def test_a_drained_worker_gives_its_tasks_away_and_answers_on(shop):
    shop.create_topics()
    configure_slot(shop, "slot-0")
    worker = shop.run()
    door = worker.until_ready()
    shop.write("once")
    shop.counts(lambda found: found == {"once": 1})
    WorkerDoor(door.url).order("pause")
    assert door.json("/status")["paused"] is True
    WorkerDoor(door.url).order("resume")
    WorkerDoor(door.url).order("restore-rate", {"bytes_per_second": 1000000})
    assert door.json("/status")["restore_rate_bytes_per_second"] == 1000000
    WorkerDoor(door.url).order("drain")
    worker.until(lambda: door.json("/status")["state"] == "not_running")
    configure_slot(shop, "slot-1")
    heir = shop.run(state="other")
    heir.until_ready()
    shop.write("twice")
    shop.counts(lambda found: found == {"once": 1, "twice": 1})
    assert door.get("/livez")[0] == 200
    worker.send()
    assert worker.wait() == 0


def configure_slot(shop, slot):
    """A static member, whose tasks would stay where they are for longer than this test waits if it had not left."""
    shop.configure(extra=f"group.instance.id: {slot}\n")
    file = shop.directory / "app.yaml"
    file.write_text(file.read_text().replace("session.timeout.ms: 6000", "session.timeout.ms: 120000"))
