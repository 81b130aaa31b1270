"""Asking the group for a rebalance from outside, where the workers do not ask by themselves."""

import subprocess
import sys
import urllib.request

import pytest

WORDS = [f"word-{number:03d}" for number in range(400)]
SETTINGS = "acceptable.recovery.lag: 20\nprobing.when.caught.up: false\n"


def tasks(door):
    """With state (sub-topology 1), that run."""
    return {
        task["id"]
        for thread in door.json("/status")["threads"]
        for task in thread["tasks"]
        if task["phase"] == "running" and task["id"].startswith("1_")
    }


def copies(door):
    return {
        copy["id"]: (copy["kind"], copy["lag_records"])
        for thread in door.json("/status")["threads"]
        for copy in thread["standbys"]
    }


def probe_by_http(door):
    request = urllib.request.Request(door.url + "/control/probe", b"{}", {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=5) as answer:
        assert answer.status == 202


def probe_by_command(door):
    command = [sys.executable, "-c", "from streamfleet.cli import main; main()", "worker", "probe", door.url]
    subprocess.run(command, check=True, timeout=60)


@pytest.mark.parametrize("probe", [probe_by_http, probe_by_command])
def test_a_task_whose_warm_up_is_ready_moves_when_the_group_is_asked_to_look(shop, probe):
    shop.create_topics()
    shop.configure(SETTINGS)
    first = shop.run(state="first")
    first_door = first.until_ready()
    shop.write(*WORDS)
    shop.counts(lambda found: len(found) == len(WORDS))

    second = shop.run(state="second")
    second_door = second.door()
    (moving,) = second.until(lambda: [task for task, copy in copies(second_door).items() if copy == ("warmup", 0)])
    assert tasks(first_door) == {"1_0", "1_1"} and not tasks(second_door)  # until the timer, in ten minutes

    probe(second_door)
    second.until(lambda: tasks(second_door) == {moving})
    first.until(lambda: tasks(first_door) == {"1_0", "1_1"} - {moving})
    shop.write(*WORDS)
    shop.counts(lambda found: found == dict.fromkeys(WORDS, 2))
    second.until(lambda: not copies(second_door))
