"""A bootstrap on a real broker: by the job's own command, killed and resumed, adopted by the engine, refused where it must be."""

import json
import uuid

import pytest
from tests.audit_lab.bootstrap_world import Restored, World

from streamfleet_jobs.bootstrap.job import Bootstrap
from streamfleet_jobs.bootstrap.spark_engine import SparkEngine
from streamfleet_jobs.bootstrap.spec import BootstrapSpec

EVENTS = 50_000
STATES = ["computed", "staged", "changelog_written", "verified"]


@pytest.fixture
def world(broker, tmp_path):
    return World(broker, tmp_path, f"boot-{uuid.uuid4().hex[:8]}")


def test_an_adopted_bootstrap_equals_processing_everything_and_only_the_tail_is_replayed(world, capfd):
    world.land(world.produce(EVENTS))
    done, told = world.run()
    assert done.returncode == 0, done.stderr
    assert [line["state"] for line in told] == STATES
    keys = len(world.expected)
    assert told[-1]["detail"]["records"] == keys
    tail = 500
    world.produce(tail)
    first = Restored()
    world.run_until_equal(first)
    assert first.records == 0
    assert "snapshot taken over" in capfd.readouterr().out
    world.wipe()
    world.produce(50)
    second = Restored()
    world.run_until_equal(second)
    assert 0 < second.records <= tail
    world.wipe()
    world.flip_a_byte()
    capfd.readouterr()
    world.produce(50)
    third = Restored()
    world.run_until_equal(third)
    assert third.records >= keys
    assert "snapshot not used, the changelog is replayed" in capfd.readouterr().out


def test_an_app_that_leaves_records_out_is_not_verified_by_a_declaration_that_does_not(world):
    world.land(world.produce(EVENTS))
    done, told = world.run(**world.with_code())
    assert done.returncode == 0, done.stderr
    verified = told[-1]["detail"]
    assert (verified["topology_keys"], verified["topology_told"]) == (200, "")
    assert verified["topology_records"] == verified["sample_records"]
    done, told = world.run(**world.second_run(**world.with_code('.filter(lambda key, _: not key.endswith("7"))')))
    assert done.returncode == 4
    assert [line["state"] for line in told] == STATES[:-1]
    assert "the app's topology computes None for a key that was computed as" in done.stderr


def test_what_the_topic_has_deleted_cannot_be_looked_at_and_is_told(world):
    world.land(world.produce(2000))
    world.delete_before(world.ends[0] // 2)
    done, told = world.run(**world.with_code())
    assert done.returncode == 0, done.stderr
    verified = told[-1]["detail"]
    assert 0 < verified["topology_keys"] < verified["sample_keys"]
    assert "the topic no longer has all records of" in verified["topology_told"]
    assert verified["topology_told"] in done.stderr


@pytest.mark.parametrize("state", STATES)
def test_a_run_that_was_killed_after_a_step_goes_on(world, state):
    world.land(world.produce(300))
    killed, told = world.run(kill_after=state)
    assert killed.returncode == -9
    assert [line["state"] for line in told] == STATES[: STATES.index(state) + 1]
    done, told = world.run(token=2)
    assert done.returncode == 0, done.stderr
    proven = [line["state"] for line in told if line["detail"]["resumed"]]
    assert proven == [one for one in STATES[: STATES.index(state) + 1] if one != "verified"]
    assert world.changelog() == world.expected


def test_a_token_that_was_overtaken_is_refused(world):
    world.land(world.produce(100))
    assert world.run(token=5)[0].returncode == 0
    done, told = world.run(token=4)
    assert (done.returncode, told) == (4, [])
    assert "token 4 is fenced: 5 has been seen" in done.stderr


def test_it_is_refused_while_the_app_runs(world):
    world.land(world.produce(100))
    app = world.app(Restored(), store_epochs={}, state_snapshot_dir=None)
    app.start()
    try:
        app.wait_until_running()
        done, told = world.run()
    finally:
        app.close()
    assert (done.returncode, told) == (4, [])
    assert "stop the app" in done.stderr


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda rows: rows[:40] + rows[41:], "lacks 1 offsets"),
        (lambda rows: [*rows, rows[7]], "has 1 rows twice"),
        (lambda rows: [(k, p + 5, o, t) for k, p, o, t in rows], "has rows of partition"),
    ],
    ids=["hole", "duplicate", "other-partitions"],
)
def test_a_table_that_is_not_the_topic_is_refused(world, change, why):
    world.land(change(world.produce(200)))
    done, told = world.run()
    assert (done.returncode, told) == (4, [])
    assert why in done.stderr


def test_spark_computes_the_same_rows(world, spark, capsys):
    """The whole job in the session that all tests share; as a process of its own it runs in the long set."""
    world.land(world.produce(EVENTS))
    local, told_by_local = world.run()
    assert local.returncode == 0, local.stderr
    spec = BootstrapSpec.model_validate(world.spec(**world.second_run()))
    Bootstrap(spec, lambda: SparkEngine(spec, spark), lambda _: None).run()
    told_by_spark = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    assert [line["state"] for line in told_by_spark] == STATES
    computed = [json.loads((world.directory / run / "computed.json").read_text()) for run in ("run", "run-2")]
    assert computed[0]["detail"]["digests"] == computed[1]["detail"]["digests"]
    assert told_by_local[-1]["detail"]["offsets"] == told_by_spark[-1]["detail"]["offsets"]


def test_an_abort_puts_the_offsets_back_and_nothing_is_taken_over(world, capfd):
    world.produce(100)
    world.run_until_equal(Restored(), store_epochs={}, state_snapshot_dir=None)  # the app has been here before
    world.produce(200)
    world.land(world.produced)
    done, told = world.run()
    assert done.returncode == 0, done.stderr
    former, set_now = told[-1]["detail"]["former_offsets"], told[-1]["detail"]["offsets"]
    assert sum(one["offset"] for one in former) == 100 and sum(one["offset"] for one in set_now) == 300
    aborted, told = world.run(arguments=["--abort"], token=2)
    assert aborted.returncode == 0, aborted.stderr
    assert [line["state"] for line in told] == ["aborted"]
    again, told = world.run(token=3, **world.second_run())
    assert again.returncode == 0, again.stderr
    assert told[-1]["detail"]["former_offsets"] == former
    assert list((world.directory / "snapshots").rglob("manifest.json")) == []
    assert capfd.readouterr().err.count("Traceback") == 0
