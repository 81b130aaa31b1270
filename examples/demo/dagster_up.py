"""Dagster for the fleet of `make up`: two code locations, the webserver and the daemon, each a process, on loopback and below one
directory. Called by fleet_up.py, and by tests that need Dagster on a fleet of their own.

    dagster.yaml, workspace.yaml   as infra/dagster has them      settings.json   ports, and the server they were started for
    fleet, control, webserver, daemon: .json which process, .log  tmp/            whatever else they write
"""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from dagster import DagsterInstance

from examples.demo.background import Background
from examples.demo.usual_port import usual_or_free
from streamfleet_devbroker.ports import free_ports
from streamfleet_platform.runtime.keeper import read_json, write_json

ROOT = Path(__file__).resolve().parents[2]
WEBSERVER_PORT = 3000
LOADED_SECONDS = 180.0
LOCATIONS = ("fleet", "control")
PARTS = (*LOCATIONS, "webserver", "daemon")
_LONGEST_PATH = 80
"""Of a directory for sockets: the system takes 104 to 108 characters, with their names."""
_LOADED = """{
  workspaceOrError { ... on Workspace { locationEntries {
    name loadStatus locationOrLoadError { __typename ... on PythonError { message } } } } }
  instance { daemonHealth { allDaemonStatuses { daemonType required healthy } } }
}"""


class NotLoadedError(Exception):
    """Dagster did not come up; the message says what it lacks, and where the logs are."""


@dataclass(frozen=True)
class Dagster:
    """One instance in one directory."""

    directory: Path
    patience_seconds: float = LOADED_SECONDS
    """How long its locations may take to load."""
    on_usual_port: bool = True
    """False: on any free one, for those that run beside others."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.ports['webserver']}"

    @property
    def ports(self) -> dict[str, int]:
        """Chosen once: the console of the server links here, and the parts find each other by them."""
        known = read_json(self._settings) or {}
        if "ports" not in known:
            webserver, *own = free_ports(1 + len(LOCATIONS))
            chosen = usual_or_free(WEBSERVER_PORT) if self.on_usual_port else webserver
            known["ports"] = {"webserver": chosen, **dict(zip(LOCATIONS, own, strict=True))}
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_json(self._settings, known)
        ports: dict[str, int] = known["ports"]
        return ports

    def start(self, server: str, token: str) -> None:
        """What does not run yet. All of it anew, if it ran for a server at another address."""
        ports, known = self.ports, read_json(self._settings) or {}
        if known.get("server") != server:
            self.stop()
            write_json(self._settings, {"ports": ports, "server": server})
        for name in ("dagster.yaml", "workspace.yaml"):
            shutil.copyfile(ROOT / "infra" / "dagster" / name, self.directory / name)
        self._temporary.mkdir(mode=0o700, exist_ok=True)
        self.create_tables()
        environment = self._environment(server, token)
        for part in PARTS:
            background = self.part(part)
            if not background.is_running:
                background.start(self._command(part), cwd=ROOT, environment=environment)
            if part == LOCATIONS[-1]:
                self._wait_for_locations()

    def create_tables(self) -> None:
        """By one process: of several that find none, each would make them, and all but one would fail."""
        with DagsterInstance.from_config(str(self.directory)) as instance:
            instance.get_runs(limit=1)

    def _wait_for_locations(self) -> None:
        """The others would find nobody there, and fill their logs with that."""
        deadline = time.monotonic() + self.patience_seconds
        for part in LOCATIONS:
            while not _is_answering(self.ports[part]):
                if not self.part(part).is_running or time.monotonic() > deadline:
                    raise NotLoadedError(f"Dagster's location {part} did not come up; see {self.part(part).log}")
                time.sleep(0.1)

    def part(self, name: str) -> Background:
        return Background(self.directory, name)

    def wait_until_loaded(self) -> None:
        """Until both locations are loaded, and all daemons have said that they are there."""
        deadline = time.monotonic() + self.patience_seconds
        while True:
            lacking, ended = self.what_lacks(), [part for part in PARTS if not self.part(part).is_running]
            if lacking is None and not ended:  # somebody else's may answer where ours could not listen
                return
            if ended or time.monotonic() > deadline:
                gone = f"{', '.join(ended)} ended; " if ended else ""
                raise NotLoadedError(
                    f"Dagster is not up: {gone}{lacking or 'another answers there'}; its logs are in {self.directory}"
                )
            time.sleep(0.3)

    def what_lacks(self) -> str | None:
        try:
            found = self.ask(_LOADED)
        except httpx.HTTPError as error:
            return f"its webserver does not answer: {error}"
        entries = found["workspaceOrError"].get("locationEntries", [])
        if len(entries) < len(LOCATIONS):
            return "its locations are not known"
        for entry in entries:
            state = entry["locationOrLoadError"] or {}
            if entry["loadStatus"] != "LOADED" or state.get("__typename") != "RepositoryLocation":
                return f"location {entry['name']} is not loaded: {state.get('message', entry['loadStatus'])}"
        late = [
            each["daemonType"]
            for each in found["instance"]["daemonHealth"]["allDaemonStatuses"]
            if each["required"] and not each["healthy"]
        ]
        return f"daemons that have not reported: {', '.join(late)}" if late else None

    def ask(self, query: str, **variables: Any) -> dict[str, Any]:
        """GraphQL, as the pages do."""
        with httpx.Client(base_url=self.url, timeout=30.0, trust_env=False) as client:
            answer = client.post("/graphql", json={"query": query, "variables": variables})
            answer.raise_for_status()
            content = answer.json()
        if content.get("errors"):
            raise NotLoadedError(f"Dagster refused a question: {content['errors'][0]['message']}")
        data: dict[str, Any] = content["data"]
        return data

    def stop(self) -> bool:
        """Whether any of it ran."""
        with ThreadPoolExecutor(len(PARTS)) as pool:
            ran = list(pool.map(lambda part: self.part(part).stop(), PARTS))
        shutil.rmtree(self._temporary, ignore_errors=True)
        return any(ran)

    def _command(self, part: str) -> list[str]:
        python, ports, workspace = sys.executable, self.ports, str(self.directory / "workspace.yaml")
        if part in LOCATIONS:
            module = f"dagster_streamfleet.locations.{part}"
            where = ["--host", "127.0.0.1", "--port", str(ports[part]), "--location-name", part]
            return [python, "-m", "dagster", "code-server", "start", *where, "--module-name", module]
        if part == "webserver":
            where = ["--host", "127.0.0.1", "--port", str(ports[part])]
            return [python, "-m", "dagster_webserver", *where, "--workspace", workspace]
        return [python, "-m", "dagster._daemon", "run", "--workspace", workspace]

    def _environment(self, server: str, token: str) -> dict[str, str]:
        ports = {f"STREAMFLEET_DAGSTER_{name.upper()}_PORT": str(self.ports[name]) for name in LOCATIONS}
        return {
            **os.environ,
            **ports,
            "DAGSTER_HOME": str(self.directory),
            "STREAMFLEET_SERVER": server,
            "STREAMFLEET_TOKEN": token,
            "TMPDIR": str(self._temporary),
        }

    @property
    def _temporary(self) -> Path:
        """Here, or where sockets can have names that are short enough."""
        here = self.directory / "tmp"
        if len(str(here)) <= _LONGEST_PATH:
            return here
        mark = hashlib.sha256(str(here).encode()).hexdigest()[:12]
        return Path(tempfile.gettempdir()) / f"streamfleet-dagster-{os.getuid()}-{mark}"

    @property
    def _settings(self) -> Path:
        return self.directory / "settings.json"


def _is_answering(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0
