"""`make up` and `make down` as a newcomer meets them, with a home directory that is empty."""

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from examples.demo.dagster_up import Dagster
from streamfleet_devbroker.directories import cache_directory
from streamfleet_platform import FleetClient, FleetError, Phase
from streamfleet_platform.cli.connection import ExitCode

ROOT = Path(__file__).resolve().parents[3]
APPS = {"country-activity", "country-view", "order-enrichment"}


class Demo:
    """Runs the demonstration with directories of its own."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.directory = home / "up"
        self.addresses: set[str] = set()
        self.told = ""
        places = {"HOME": str(home), "XDG_STATE_HOME": str(home / "state"), "XDG_CONFIG_HOME": str(home / "config")}
        self._environment = {**os.environ, **places, "XDG_CACHE_HOME": str(cache_directory().parent)}

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "examples.demo", command, str(self.directory)]
        return subprocess.run(line, cwd=ROOT, env=self._environment, capture_output=True, text=True, timeout=280)

    def things_to_try(self) -> list[str]:
        """As they were printed, without what is said of them."""
        return re.findall(r"^  \d\. (.*?)(?:  .*)?$", self.told, re.MULTILINE)

    def typed(self, line: str) -> subprocess.CompletedProcess[str]:
        """A command as it was printed, by who called `up`."""
        program, *arguments = shlex.split(line.removesuffix(":"))
        found = Path(sys.executable).with_name(Path(program).name) if "/" in program else program
        # make looks for Python as its user has it
        environment = self._environment if "/" in program else None
        return subprocess.run(
            [found, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120
        )

    def up(self) -> FleetClient:
        result = self.run("up")
        assert result.returncode == 0, result.stdout + result.stderr
        link = re.search(r"(http://127\.0\.0\.1:\d+)/#token=(\S+)", result.stdout)
        assert link, result.stdout
        self.told = result.stdout
        self.addresses = set(re.findall(r"127\.0\.0\.1:(\d+)", result.stdout))
        return FleetClient(link[1], token=link[2])

    @property
    def dagster(self) -> Dagster:
        return Dagster(self.directory / "dagster")

    def answering(self) -> list[str]:
        """Of the ports that were printed, those where still somebody listens."""
        return [port for port in self.addresses if _is_answering(int(port))]

    def links(self) -> dict[str, int]:
        """What was printed to be opened, or to be typed, and what it answers."""
        found = {}
        for line in self.told.splitlines():
            typed = re.search(r"curl -H '(\S+): ([^']+)'", line)  # not everybody has curl
            headers = {} if typed is None else {typed[1]: typed[2]}
            for link in re.findall(r"https?://\S+", line):
                address = link.partition("#")[0]
                found[link] = httpx.get(address, headers=headers, follow_redirects=True, timeout=30).status_code
        return found

    def files(self) -> list[Path]:
        """Whatever lies in the home directory."""
        return [path for path in self._home.rglob("*") if not path.is_dir()]

    def processes(self) -> list[int]:
        """Everything that runs and names this directory."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if str(self.directory).encode() in command and int(entry.name) != os.getpid():
                found.append(int(entry.name))
        return found


def _is_answering(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def demo(tmp_path):
    demo = Demo(tmp_path)
    yield demo
    demo.run("down")


def until(condition, what, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.3)


def test_up_runs_the_fleet_can_be_repeated_survives_a_killed_server_and_down_leaves_nothing(demo):
    with demo.up() as client:
        apps = {app.name: app for app in client.apps()}
        assert set(apps) == APPS and {app.phase for app in apps.values()} == {Phase.RUNNING}
        assert client.app("country-activity").downstream == ("country-view",)
        until(lambda: _orders_of(client, "SE") > 0, "orders of a country in the last app's table")
        assert demo.dagster.what_lacks() is None
        links = demo.links()
        assert len(links) == 3 and set(links.values()) == {200}, links  # console, Dagster, API
        assert shown_apps(demo.dagster) == APPS
        try_what_was_printed(demo, client)
        before = {app: client.app(app).workers[0].pid for app in APPS}

        server = re.search(r'"pid": (\d+)', (demo.directory / "server" / "server.json").read_text())
        assert server
        os.kill(int(server[1]), signal.SIGKILL)
    with demo.up() as client:  # repeated: comes back, and the workers never noticed
        until(lambda: all(app.phase is Phase.RUNNING for app in client.apps()), "all apps to be seen again")
        assert {app: client.app(app).workers[0].pid for app in APPS} == before

    result = demo.run("down")
    assert result.returncode == 0, result.stdout + result.stderr
    assert demo.processes() == []
    assert len(demo.addresses) == 3  # server, Dagster, broker
    assert demo.answering() == []
    assert demo.files() == []

    again = demo.run("down")
    assert again.returncode == 0, again.stdout + again.stderr
    assert "no load is running" in again.stdout and "no Dagster is running" in again.stdout
    assert "nothing is left" in again.stdout and demo.files() == [] and not demo.directory.exists()


def try_what_was_printed(demo, client):
    query, load, change = demo.things_to_try()

    asked = demo.typed(query)
    assert asked.returncode == 0, asked.stderr
    assert "Sweden" in asked.stdout

    def orders():
        topics = client.app("order-enrichment").topics
        return next(topic.end_offsets or 0 for topic in topics if topic.name == "orders")

    until(lambda: orders() > 0, "the topic's size")
    before = orders()
    assert "RATE=20000 SECONDS=120" in load
    more = demo.typed(load.replace("RATE=20000 SECONDS=120", "RATE=2000 SECONDS=3"))  # the same, for less long
    assert more.returncode == 0, more.stdout + more.stderr
    written = re.search(r"(\d+) orders written in 3 s", more.stdout)
    assert written, more.stdout
    until(lambda: orders() >= before + int(written[1]), "what was written to be seen")

    found = re.fullmatch(r"edit (\S+), then (.+ plan): what it would mean", change)
    assert found, change
    file = ROOT / found[1]
    kept = file.read_text()
    file.write_text(kept.replace('.to_stream(name="views")', f'.to_stream(name="views"){FILTER}'))
    planned = demo.typed(found[2])
    assert planned.returncode == ExitCode.PENDING, planned.stdout + planned.stderr
    told = " ".join(planned.stdout.split())
    assert "update country-view blocked: " in told, told
    assert "write it with `streamfleet lock country-view`, and review the difference" in told, told
    agreed = re.search(r"agree to it: (.+ lock .+), then plan and apply", demo.told)
    assert agreed, demo.told
    locked = demo.typed(agreed[1])
    assert locked.returncode == 0, locked.stdout + locked.stderr
    planned = demo.typed(found[2])
    assert planned.returncode == ExitCode.PENDING and "upgrade country-view: ROLLING" in planned.stdout, planned.stdout
    file.write_text(kept)
    assert demo.typed(agreed[1]).returncode == 0
    as_it_was = demo.typed(found[2])
    assert as_it_was.returncode == 0, as_it_was.stdout


FILTER = '.filter(lambda _, shown: shown.orders > 1, name="busy")'


def shown_apps(dagster: Dagster) -> set[str]:
    found = dagster.ask("{ assetNodes { assetKey { path } } }")["assetNodes"]
    return {node["assetKey"]["path"][0] for node in found if node["assetKey"]["path"][1:] == ["app"]}


def _orders_of(client: FleetClient, country: str) -> int:
    try:
        answer = client.query("country-view", "country-view", country)
    except FleetError:  # no such key yet, or nobody owns it at the moment
        return 0
    return int((answer.get("value") or {}).get("orders", 0))
