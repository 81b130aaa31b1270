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
from examples.demo.source import FLEET, prepared_source
from streamfleet_devbroker import PortTakenError
from streamfleet_devbroker.ports import free_ports
from streamfleet_devbroker.service import BrokerService
from streamfleet_platform import FleetClient, Phase, TransientError
from streamfleet_platform.views import AppSummary

ROOT = Path(__file__).resolve().parents[2]
LOAD_RATE = 200
LOAD_SECONDS = 8 * 3600
"""A demonstration that was forgotten comes to rest by itself."""
SERVER_PORT = 8400
RUNNING_SECONDS = 180.0
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
        port = SERVER_PORT if _is_free(SERVER_PORT) else free_ports(1)[0]
        command = ["up", "--source", str(source), "--fleet", str(FLEET), "--port", str(port), "--json"]
        for name, url in links.items():
            command += ["--link", f"{name}={url}"]
        answer = json.loads(self._streamfleet(*command, "--data", str(self.directory / "server")))
        return answer["server"], answer["console"]

    def apps(self, server: str, token: str) -> list[AppSummary]:
        """Apply the definitions, and wait until every app runs."""
        with FleetClient(server, token=token) as client:
            deadline, told = time.monotonic() + RUNNING_SECONDS, ""
            self._apply(client, deadline)
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

    def _apply(self, client: FleetClient, deadline: float) -> None:
        """A server that was killed keeps its lease for a while, and its successor waits for that."""
        while True:
            try:
                client.apply()
            except TransientError as error:
                if time.monotonic() > deadline:
                    raise
                time.sleep(error.retry_after)
            else:
                return

    def down(self) -> None:
        self.say("stopping the load" if self._background("load").stop() else "no load is running")
        if (self.directory / "server").is_dir():
            self._streamfleet("down", "--workers", "--data", str(self.directory / "server"))
        self._broker_service.stop(self.say)

    @property
    def _broker_service(self) -> BrokerService:
        return BrokerService(directory=self.directory / "broker")

    def _background(self, name: str) -> Background:
        self.directory.mkdir(parents=True, exist_ok=True)
        return Background(self.directory, name)

    def _streamfleet(self, *arguments: str) -> str:
        program = str(Path(sys.executable).with_name("streamfleet"))
        result = subprocess.run(  # noqa: S603 our own command
            [program, *arguments], stdout=subprocess.PIPE, text=True, cwd=ROOT, check=False
        )
        if result.returncode:
            raise NotUpError(f"streamfleet {arguments[0]} ended with {result.returncode}")
        return result.stdout


def _is_free(port: int) -> bool:
    import socket

    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
