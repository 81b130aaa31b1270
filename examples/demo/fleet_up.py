"""The parts that `make up` starts, one after the other; each is left alone where it runs already. Called by __main__.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from examples.demo.background import Background
from examples.demo.dagster_up import Dagster
from examples.demo.source import FLEET, prepared_source
from examples.demo.usual_port import usual_or_free
from streamfleet_devbroker import BrokerError, PortTakenError
from streamfleet_devbroker.ports import free_ports
from streamfleet_devbroker.service import BrokerService
from streamfleet_platform import FleetClient, Phase, TransientError
from streamfleet_platform.api import TokenFile
from streamfleet_platform.runtime.keeper import read_json, write_json
from streamfleet_platform.views import AppSummary

ROOT = Path(__file__).resolve().parents[2]
LOAD_RATE = 200
LOAD_SECONDS = 8 * 3600
"""A demonstration that was forgotten comes to rest by itself."""
SERVER_PORT = 8400
RUNNING_SECONDS = 180.0
DAGSTER = "dagster"
"""The name of its token: an operator's, because Dagster asks nobody who they are."""
_PLACES = ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME")
Say = Callable[[str], None]


class NotUpError(Exception):
    """Something did not come up; the message says what, and where its log is."""


@dataclass(frozen=True)
class Demonstration:
    """Everything lies below one directory, and is gone with it."""

    directory: Path
    say: Say

    def broker(self) -> str:
        """The address of a broker of its own, on the usual port unless somebody else has that."""
        service = self._broker_service
        try:
            status = service.start(self.say)
        except PortTakenError as error:
            port = free_ports(1)[0]
            self.say(f"{error.fact}: taking {port} instead")
            status = service.start(self.say, port=port)
        assert status.asked is not None
        return status.asked.bootstrap_servers

    def running_broker(self) -> str | None:
        status = self._broker_service.status()
        return status.asked.bootstrap_servers if status.asked is not None and status.running else None

    def load(self, bootstrap_servers: str) -> None:
        load = self._background("load")
        if load.is_running:
            return
        self.say(f"writing {LOAD_RATE} orders per second")
        command = [sys.executable, "-m", "examples.demo.load", "--bootstrap", bootstrap_servers]
        command += ["--rate", str(LOAD_RATE), "--seconds", str(LOAD_SECONDS)]
        load.start(command, cwd=ROOT, environment=dict(os.environ))

    def server(self, bootstrap_servers: str, links: dict[str, str]) -> tuple[str, str]:
        """The address of the server, and the link of its console, which carries a token."""
        source = prepared_source(self.directory / "source", bootstrap_servers)
        port = str(usual_or_free(SERVER_PORT))
        command = ["up", "--source", str(source), "--fleet", str(FLEET), "--port", port, "--json"]
        for name, url in links.items():
            command += ["--link", f"{name}={url}"]
        answer = json.loads(self._streamfleet(*command, "--data", str(self.directory / "server")))
        return answer["server"], answer["console"]

    def apply(self, server: str, token: str) -> None:
        """A server that was killed keeps its lease for a while, and its successor waits for that."""
        deadline = time.monotonic() + RUNNING_SECONDS
        with FleetClient(server, token=token) as client:
            while True:
                try:
                    client.apply()
                except TransientError as error:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(error.retry_after)
                else:
                    return

    @property
    def dagster(self) -> Dagster:
        return Dagster(self.directory / "dagster")

    def start_dagster(self, server: str) -> None:
        """After the definitions were applied: its locations show the apps that are there when they load."""
        self.dagster.start(server, self._dagster_token())

    def _dagster_token(self) -> str:
        tokens, file = TokenFile(self.directory / "server" / "tokens.json"), self.dagster.directory / "token.json"
        known = (read_json(file) or {}).get("token", "")
        if tokens.principal(known) is not None:
            return str(known)
        if any(entry.name == DAGSTER for entry in tokens.entries()):
            tokens.revoke(DAGSTER)
        made = tokens.create(DAGSTER, "operator", "all")
        write_json(file, {"token": made})
        return made

    def apps(self, server: str, token: str) -> list[AppSummary]:
        """All of them, as soon as every one runs."""
        with FleetClient(server, token=token) as client:
            deadline, told = time.monotonic() + RUNNING_SECONDS, ""
            while True:
                apps = client.apps()
                now = ", ".join(f"{app.name} {app.phase.value}" for app in apps)
                if now != told:
                    self.say(now)
                    told = now
                if apps and all(app.phase is Phase.RUNNING for app in apps):
                    return apps
                if time.monotonic() > deadline:
                    reasons = "; ".join(f"{app.name}: {app.reason}" for app in apps if app.phase is not Phase.RUNNING)
                    raise NotUpError(f"not all apps run after {RUNNING_SECONDS:g} s: {reasons}")
                time.sleep(0.5)

    def down(self) -> None:
        """All of it, also when some of it cannot be stopped; then that is said at the end."""
        troubles: list[str] = []
        for stop in (
            self._stop_load,
            self._stop_dagster,
            self._stop_server,
            lambda: self._broker_service.stop(self.say),
        ):
            try:
                stop()
            except (BrokerError, NotUpError, OSError) as error:
                troubles.append(str(error))
        if troubles:
            raise NotUpError("; ".join(troubles))

    def _stop_load(self) -> None:
        self.say("stopping the load" if self._background("load").stop() else "no load is running")

    def _stop_dagster(self) -> None:
        self.say("Dagster has stopped" if self.dagster.stop() else "no Dagster is running")

    def _stop_server(self) -> None:
        if (self.directory / "server").is_dir():
            self._streamfleet("down", "--workers", "--data", str(self.directory / "server"))

    @property
    def _broker_service(self) -> BrokerService:
        return BrokerService(directory=self.directory / "broker")

    def _background(self, name: str) -> Background:
        self.directory.mkdir(parents=True, exist_ok=True)
        return Background(self.directory, name)

    def _streamfleet(self, *arguments: str) -> str:
        program = str(Path(sys.executable).with_name("streamfleet"))
        result = subprocess.run(  # noqa: S603 our own command
            [program, *arguments], stdout=subprocess.PIPE, text=True, cwd=ROOT, env=self._places(), check=False
        )
        if result.returncode:
            raise NotUpError(f"streamfleet {arguments[0]} ended with {result.returncode}")
        return result.stdout

    def _places(self) -> dict[str, str]:
        """The environment, with the home that `up` was called with: what was written there is deleted there."""
        file = self.directory / "places.json"
        known = read_json(file)
        if known is None:
            known = {name: os.environ[name] for name in _PLACES if name in os.environ}
            self.directory.mkdir(parents=True, exist_ok=True)
            write_json(file, known)
        return {name: value for name, value in os.environ.items() if name not in _PLACES} | known
