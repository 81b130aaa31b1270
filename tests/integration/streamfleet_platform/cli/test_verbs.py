"""The commands that the newcomer's path leaves out, against a real server with a real app on a real broker."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from confluent_kafka.admin import NewPartitions
from tests.integration.streamfleet_platform.real_fleet import RealFleet, until

STREAMFLEET = Path(sys.executable).with_name("streamfleet")


class Terminal:
    """Somebody who works in the source directory, with a home directory of their own."""

    def __init__(self, fleet, home):
        self._fleet = fleet
        self.server = fleet.client.url
        self._environment = {
            **os.environ,
            "HOME": str(home),
            "COLUMNS": "200",
            "XDG_CONFIG_HOME": str(home / "config"),
            "STREAMFLEET_SERVER": self.server,
            "STREAMFLEET_TOKEN": fleet.token,
        }

    def run(self, *arguments, expected=0):
        command = [str(STREAMFLEET), *map(str, arguments)]
        done = subprocess.run(
            command, cwd=self._fleet.source, env=self._environment, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == expected, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def json(self, *arguments, expected=0):
        return json.loads(self.run(*arguments, "--json", expected=expected))


@pytest.fixture
def fleet(broker, tmp_path):
    fleet = RealFleet(tmp_path, broker.bootstrap_servers)
    yield fleet
    fleet.close()


@pytest.mark.timeout(300)
def test_diff_describe_logs_doctor_probe_stop_and_start(fleet, tmp_path):
    fleet.deployed()
    fleet.send()
    fleet.assert_counts_are_exact()
    terminal, name = Terminal(fleet, tmp_path), fleet.name

    # diff: the code against its lock
    assert terminal.json("diff", expected=3)["new"] == [name]
    terminal.run("lock")
    assert terminal.json("diff")["apps"][name]["changes"] == []
    fleet.declare("other")
    [found] = terminal.json("diff", expected=3)["apps"].values()
    assert found["verdict"] == "ROLLING" and found["lost_state"] == []
    assert "seen" in terminal.run("diff", name, expected=3)
    fleet.declare("topology")

    # looking
    told = terminal.run("describe", name)
    for words in (f"{name}: running", "team-words", "counts", f"{name}-by-word-repartition", "deploy", "1 of 1 ready"):
        assert words in told, told
    detail = terminal.json("describe", name)
    assert {task["id"] for task in detail["placement"]} == {"0_0", "0_1", "1_0", "1_1"}
    where = {row["path"]: row for row in terminal.json("describe", name, "--provenance")}
    assert where["spec.scale.max"]["place"].startswith(f"apps/{name}.yaml:")
    assert where["spec.run.config.commit.interval.ms"]["place"].startswith("fleet.yaml:")
    assert "running" in terminal.run("logs", name, "--slot", 0, "-n", 200)
    found = terminal.json("doctor")
    assert {each["level"] for each in found if each["what"].startswith(("cluster", "server", "definitions"))} == {"ok"}
    assert any("1 apps" in each["detail"] for each in found)

    # a worker's door is on the one loopback address that it names, and on no other
    address = urlsplit(detail["workers"][0]["url"])
    assert address.hostname == "127.0.0.1"
    with socket.create_connection(("127.0.0.1", address.port), 5):
        pass
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", address.port), 5)

    # verbs
    [before] = fleet.pids().values()
    assert "probe of" in terminal.run("probe", name) and fleet.pids() == {0: before}
    stopped = terminal.json("stop", name)
    assert (stopped["state"], stopped["kind"]) == ("succeeded", "stop") and fleet.pids() == {}
    until(lambda: [app["phase"] for app in terminal.json("status")["apps"]] == ["stopped"], "the app to be stopped", 30)
    fleet.send()
    terminal.run("start", name)
    fleet.assert_counts_are_exact()  # with what came while it was stopped
    assert fleet.pids().keys() == {0} and fleet.pids() != {0: before}


@pytest.mark.timeout(300)
def test_a_plan_tells_of_an_input_that_was_resized_and_a_reset_takes_it_as_it_is(fleet, tmp_path):
    fleet.deployed()
    terminal, topic = Terminal(fleet, tmp_path), f"{fleet.name}-in"
    assert terminal.json("plan")["changes"][0]["blocked"] is None
    fleet.admin.create_partitions([NewPartitions(topic, 4)])[topic].result(30)
    until(lambda: fleet.client.plan().changes[0].blocked, "the plan to know", 30)
    told = terminal.run("plan", expected=3)
    assert "it had 2 partitions, has 4" in told and "reset the app, or raise its generation" in told
    terminal.run("reset", fleet.name, "--confirm", fleet.name)
    assert terminal.json("plan")["changes"][0]["blocked"] is None
    fleet.send()
    fleet.assert_counts_are_exact()
