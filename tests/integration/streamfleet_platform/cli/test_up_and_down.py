"""`up` and `down` with the real server, in the background, as a person calls them."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture
def call(tmp_path):
    environment = {
        **os.environ,
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "STREAMFLEET_DATA": str(tmp_path / "data"),
    }
    for name in ("STREAMFLEET_TOKEN", "STREAMFLEET_SERVER"):
        environment.pop(name, None)

    def call(*arguments):
        command = [sys.executable, "-m", "streamfleet_platform.cli", *arguments]
        return subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False
        )

    yield call
    call("down", "--workers")


def test_a_server_comes_up_once_is_found_and_goes_with_its_streams(call, tmp_path):
    registry = f"sqlite:///{tmp_path}/elsewhere.db"
    first = call("up", "--fleet", "examples/fleet", "--port", "0", "--registry", registry, "--json")
    assert first.returncode == 0, first.stderr
    url = json.loads(first.stdout)["server"]
    again = call("up", "--fleet", "examples/fleet", "--port", "0", "--json")
    assert json.loads(again.stdout)["server"] == url
    assert json.loads(call("status", "--json").stdout)["apps"] == []

    known = tmp_path / "config" / "streamfleet" / "connection.json"
    assert stat.S_IMODE(known.stat().st_mode) == 0o600
    token = json.loads(known.read_text())["token"]
    assert token not in (tmp_path / "data" / "server.log").read_text()
    command = Path(f"/proc/{pid_of(tmp_path)}/cmdline").read_bytes()
    assert token.encode() not in command and b"elsewhere.db" not in command, "a registry's address may have a password"
    assert (tmp_path / "elsewhere.db").exists() and not (tmp_path / "data" / "registry.db").exists()
    assert httpx.get(f"{url}/v1/fleet").status_code == 401
    assert httpx.get(f"{url}/console/").status_code == 200
    with pytest.raises(OSError, match="refused"):
        socket.create_connection((other_address(), int(url.rpartition(":")[2])), 2).close()

    opened, ended = threading.Event(), threading.Event()
    threading.Thread(target=listen, args=(url, token, opened, ended), daemon=True).start()
    assert opened.wait(20)
    began = time.monotonic()
    assert "the server has stopped" in call("down").stderr
    assert time.monotonic() - began < 25, "an open stream must not keep it"
    assert ended.wait(20)
    assert "did not run" in call("down").stderr
    assert not known.exists()

    # it gave its lease back: the next server acts at once
    again = call("up", "--fleet", "examples/fleet", "--port", "0", "--registry", registry)
    assert again.returncode == 0 and "lease" not in again.stderr
    assert json.loads(call("status", "--json").stdout)["fleet"]["is_leader"]


def test_after_a_server_was_killed_the_next_one_acts_as_soon_as_up_returns(call, tmp_path):
    assert call("up", "--fleet", "examples/fleet", "--port", "0").returncode == 0
    os.kill(pid_of(tmp_path), signal.SIGKILL)
    again = call("up", "--fleet", "examples/fleet", "--port", "0")
    assert again.returncode == 0 and "killed or alive, holds the lease" in again.stderr
    assert json.loads(call("status", "--json").stdout)["fleet"]["is_leader"]


def test_a_server_that_cannot_start_says_why(call, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        result = call("up", "--fleet", "examples/fleet", "--port", port)
        in_front = call("server", "--fleet", "examples/fleet", "--port", port)
    assert in_front.returncode == 1
    assert f"error: the API cannot be served at 127.0.0.1:{port}" in in_front.stderr
    assert "address already in use" in in_front.stderr
    assert result.returncode == 1
    assert "cannot be used: Address already in use" in result.stderr and "--port" in result.stderr
    assert not (tmp_path / "config").exists(), "what listens there was taken for the server"
    result = call("up", "--fleet", "examples/fleet", "--port", "0", "--registry", "nonsense")
    assert result.returncode == 1
    assert "the server ended" in result.stderr and "the registry's URL names no database" in result.stderr


def listen(url, token, opened, ended):
    try:
        with httpx.stream(
            "GET", f"{url}/v1/events/stream", headers={"Authorization": f"Bearer {token}"}, timeout=60
        ) as answer:
            for line in answer.iter_lines():
                if line == "event: open":
                    opened.set()
    except httpx.HTTPError:
        pass  # cut off: that is what is waited for
    ended.set()


def pid_of(tmp_path):
    return json.loads((tmp_path / "data" / "server.json").read_text())["process"]["pid"]


def other_address():
    """This machine, but not its loopback: the server is not there."""
    return "127.0.0.2"
