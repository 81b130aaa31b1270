"""`up` and `down` with the real server, in the background, as a person calls them."""

import json
import os
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
    first = call("up", "--fleet", "examples/fleet", "--port", "0", "--json")
    assert first.returncode == 0, first.stderr
    url = json.loads(first.stdout)["server"]
    again = call("up", "--fleet", "examples/fleet", "--port", "0", "--json")
    assert json.loads(again.stdout)["server"] == url
    assert json.loads(call("status", "--json").stdout)["apps"] == []

    known = tmp_path / "config" / "streamfleet" / "connection.json"
    assert stat.S_IMODE(known.stat().st_mode) == 0o600
    token = json.loads(known.read_text())["token"]
    assert token not in (tmp_path / "data" / "server.log").read_text()
    assert token.encode() not in Path(f"/proc/{pid_of(tmp_path)}/cmdline").read_bytes()
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


def test_a_server_that_cannot_start_says_why(call, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        result = call("up", "--fleet", "examples/fleet", "--port", str(taken.getsockname()[1]))
    assert result.returncode == 1
    assert "the server ended" in result.stderr


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
