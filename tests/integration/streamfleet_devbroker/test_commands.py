"""`streamfleet broker` as a person uses it: every command is a process of its own."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from streamfleet_devbroker.ports import free_ports

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def port() -> int:
    return free_ports(1)[0]


@pytest.fixture
def command(tmp_path):
    """Runs `streamfleet broker ...` with a state directory of its own, and stops the broker at the end."""
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    program = Path(sys.executable).with_name("streamfleet")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        line = [str(program), "broker", *arguments]
        return subprocess.run(line, env=environment, capture_output=True, text=True, timeout=240)

    yield run
    run("stop")


def test_start_status_stop_and_start_again_keep_the_topics(command, port):
    assert command("status").returncode == 3

    started = command("start", "--port", str(port))
    assert started.returncode == 0, started.stderr
    assert started.stdout == f"127.0.0.1:{port}\n"
    assert "broker.log" in started.stderr
    admin = AdminClient({"bootstrap.servers": started.stdout.strip()})
    admin.create_topics([NewTopic("kept", 1, 1)])["kept"].result(30)

    assert command("status").stdout == f"127.0.0.1:{port}\n"
    again = command("start")
    assert again.returncode == 0
    assert "runs already" in again.stderr

    assert command("stop").returncode == 0
    assert command("status").returncode == 3
    assert "no broker is running" in command("stop").stderr

    assert command("start").stdout == f"127.0.0.1:{port}\n"
    assert "kept" in AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"}).list_topics(timeout=30).topics


def test_reset_wants_a_yes_and_then_deletes_everything(command, port, tmp_path):
    assert command("start", "--port", str(port)).returncode == 0
    refused = command("reset")
    assert refused.returncode == 2
    assert "--yes" in refused.stderr
    assert command("status").returncode == 0

    assert command("reset", "--yes").returncode == 0
    assert command("status").returncode == 3
    assert not list(tmp_path.glob("streamfleet/broker/node-*"))


def test_a_taken_port_is_one_sentence_and_exit_code_1(command):
    with socket.create_server(("127.0.0.1", 0)) as other:
        refused = command("start", "--port", str(other.getsockname()[1]))
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1].startswith("error: port ")
    assert "Traceback" not in refused.stderr


def test_other_settings_than_those_of_the_running_broker_are_refused(command, port):
    assert command("start", "--port", str(port)).returncode == 0
    refused = command("start", "--nodes", "3")
    assert refused.returncode == 1
    assert "streamfleet broker stop" in refused.stderr
    command("stop")
    refused = command("start", "--nodes", "3")
    assert refused.returncode == 1
    assert "belongs to a cluster of 1 node(s)" in refused.stderr


def test_two_starts_at_once_make_one_broker(command, port):
    with ThreadPoolExecutor(2) as terminals:
        answers = list(terminals.map(lambda _: command("start", "--port", str(port)), range(2)))
    assert [answer.returncode for answer in answers] == [0, 0]
    assert sorted("runs already" in answer.stderr for answer in answers) == [False, True]
