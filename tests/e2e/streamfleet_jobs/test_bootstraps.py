"""Bootstraps of a million keys: killed on the way, adopted, and equal to an app that processed everything."""

import itertools
import random
import sys
import time
import uuid

import pytest
from tests.audit_lab.bootstrap_world import Restored, World

pytestmark = pytest.mark.timeout(900)

KEYS = 1_000_000
MORE = 200_000
TAIL = 5_000
STATES = ["computed", "staged", "changelog_written", "verified"]


@pytest.fixture
def world(broker, tmp_path):
    world = World(broker, tmp_path, f"lake-{uuid.uuid4().hex[:8]}", keys=KEYS, partitions=4)
    once = [f"k{n}" for n in range(KEYS)]
    random.Random(3).shuffle(once)
    again = (f"k{world.random.randrange(KEYS)}" for _ in range(MORE))
    world.land(world.produce_keys(itertools.chain(once, again)))
    return world


@pytest.fixture
def timed(capfd):
    """Does it, and says how long it took, whatever is captured."""

    def act(what, does):
        began = time.monotonic()
        found = does()
        with capfd.disabled():
            sys.stdout.write(f"{what}: {time.monotonic() - began:.1f} s\n")
        return found

    return act


def test_a_million_keys_are_adopted_and_only_the_tail_is_replayed(world, timed, capfd):
    for at, state in enumerate(STATES):
        killed, told = timed(
            f"until killed after {state}", lambda s=state, t=at: world.run("spark-local", s, token=t + 1)
        )
        assert killed.returncode == -9, killed.stderr
        assert told[-1]["state"] == state and [line["detail"]["resumed"] for line in told[:-1]] == [True] * at
    done, told = timed("the last attempt", lambda: world.run("spark-local", token=9))
    assert done.returncode == 0, done.stderr
    assert told[-1]["detail"]["records"] == KEYS and told[-1]["detail"]["sample_keys"] == 200

    world.produce(TAIL)
    first, second, third = Restored(), Restored(), Restored()
    timed("adopted, tail processed", lambda: world.run_until_equal(first, 180))
    assert first.records == 0
    assert capfd.readouterr().out.count("snapshot taken over") == world.partitions
    world.wipe()
    timed("adopted again, tail replayed", lambda: world.run_until_equal(second, 180))
    assert 0 < second.records <= TAIL

    world.wipe()
    world.flip_a_byte()
    capfd.readouterr()
    timed("replayed, since a byte is wrong", lambda: world.run_until_equal(third, 300))
    assert third.records >= KEYS
    assert capfd.readouterr().out.count("snapshot not used, the changelog is replayed") == world.partitions


def test_an_app_that_processed_everything_has_the_same(world, timed):
    done, _ = timed("bootstrap without Spark", lambda: world.run())
    assert done.returncode == 0, done.stderr
    world.produce(TAIL)
    world.run_until_equal(Restored(), 180)
    other = {"application_id": f"{world.name}-all", "store_epochs": {}, "state_snapshot_dir": None}
    state = world.directory / "state-of-all"
    timed("processed record by record", lambda: world.run_until_equal(Restored(), 400, state_dir=state, **other))
    assert world.changelog(f"{world.name}-all-counts-changelog") == world.changelog()


def test_a_job_that_is_killed_anywhere_goes_on(world):
    tokens = itertools.count(1)
    for seconds in itertools.count(2, 2):
        assert seconds < 60, "it does not get on"
        if (code := world.run_for(seconds, token=next(tokens))) == 0:
            break
        assert code == -9
    assert world.changelog() == world.expected
    refused = world.app(Restored())
    refused.start()
    try:
        refused.wait_until_running(120)
        done, told = world.run(**world.second_run(published_epoch=1))
    finally:
        refused.close()
    assert (done.returncode, told) == (4, []) and "stop the app" in done.stderr


def test_a_broker_that_does_not_answer_is_said(broker, tmp_path):
    world = World(broker, tmp_path, f"lake-{uuid.uuid4().hex[:8]}")
    nobody = {"application_id": world.name, "bootstrap_servers": "127.0.0.1:9", "client_settings": {}}
    world.land(world.produce(10))
    done, told = world.run(app=nobody)
    assert (done.returncode, told) == (3, [])
    assert "Traceback" not in done.stderr and "error: " in done.stderr
