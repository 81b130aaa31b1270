"""The server of the lab, in a process of its own as anybody would start it, over a Git repository and a real broker."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from confluent_kafka.admin import AdminClient, NewTopic

from streamfleet_platform import FleetClient, Phase, TransientError
from streamfleet_platform.views import AppDetail, OperationView

SOURCE = Path(__file__).parent / "source"
PARTITIONS = 4
_PROGRAM = str(Path(sys.executable).with_name("streamfleet"))


T = TypeVar("T")


def until(condition: Callable[[], T | None], what: str, seconds: float = 60.0) -> T:
    """The first answer that is true."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited {seconds:g} s for {what}"
        time.sleep(0.1)
    return found


class Fleet:
    """Made with the apps it should have; `apply()` makes them run. `audited`: the schedule of the one that has one."""

    def __init__(
        self, directory: Path, bootstrap_servers: str, apps: Sequence[str], audited: str = "0 3 * * *"
    ) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.apps = tuple(apps)
        self.lake = directory / "lake"
        self._words = {"BOOTSTRAP": bootstrap_servers, "AUDITED": audited, "LAKE": str(self.lake)}
        self.source, self.data = directory / "source", directory / "data"
        # what commands keep for the person at the terminal must not be that of whoever runs the tests
        self._environment = {**os.environ, "HOME": str(directory), "XDG_CONFIG_HOME": str(directory / "config")}
        self.url, self.console, self.token = "", "", ""
        self._write_source()
        self._create_topics()

    def _write_source(self) -> None:
        shutil.copytree(SOURCE, self.source, ignore=shutil.ignore_patterns("__pycache__"))
        for definition in (self.source / "apps").glob("*.yaml"):
            if definition.stem not in self.apps:
                definition.unlink()
        for definition in self.source.rglob("*.yaml"):
            text = definition.read_text("utf-8")
            for word, meant in self._words.items():
                text = text.replace(word, meant)
            definition.write_text(text, "utf-8")
        self._git("init", "--quiet", "--initial-branch", "main")
        self.commit("the fleet")

    def _create_topics(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers})
        for future in admin.create_topics([NewTopic(f"{app}-in", PARTITIONS, 1) for app in self.apps]).values():
            future.result(30)

    def commit(self, message: str) -> None:
        self._git("add", "--all")
        self._git("commit", "--quiet", "--message", message)

    def raise_generation(self, app: str) -> int:
        """In Git. The new one."""
        definition = self.source / "apps" / f"{app}.yaml"
        text = definition.read_text("utf-8")
        found = re.search(r"generation: (\d+)", text)
        assert found is not None
        wanted = int(found[1]) + 1
        definition.write_text(text.replace(found[0], f"generation: {wanted}"), "utf-8")
        self.commit(f"{app}: generation {wanted}")
        return wanted

    def start(self, **links: str) -> None:
        given = [each for name, url in links.items() for each in ("--link", f"{name}={url}")]
        said = self.run("up", "--source", self.source, "--data", self.data, "--port", 0, "--json", *given)
        answer = json.loads(said)
        self.url, self.console = answer["server"], answer["console"]
        self.token = self.console.rpartition("#token=")[2]

    def client(self) -> FleetClient:
        return FleetClient(self.url, token=self.token)

    def apply(self) -> None:
        """What the branch says. A server that has just begun may not lead yet."""
        with self.client() as client:
            until(lambda: _applied(client), "the definitions to be applied")

    def until_running(self, *apps: str, seconds: float = 90.0) -> None:
        wanted = set(apps or self.apps)
        with self.client() as client:

            def run() -> bool:
                return {app.name for app in client.apps() if app.phase is Phase.RUNNING} >= wanted

            until(run, f"{', '.join(sorted(wanted))} to run", seconds)

    def app(self, name: str) -> AppDetail:
        with self.client() as client:
            return client.app(name)

    def operations(self, app: str, kind: str) -> list[OperationView]:
        """The oldest first."""
        with self.client() as client:
            found = [each for each in client.operations(app) if each.kind.value == kind]
            return [client.operation(each.id) for each in reversed(found)]

    def close(self) -> None:
        if self.data.is_dir():
            self.run("down", "--workers", "--data", self.data)

    def run(self, *arguments: Any) -> str:
        result = subprocess.run(
            [_PROGRAM, *map(str, arguments)],
            cwd=self.source,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=150,
            check=False,
        )
        assert result.returncode == 0, f"{arguments}: {result.returncode}\n{result.stdout}\n{result.stderr}"
        return result.stdout

    def _git(self, *arguments: str) -> None:
        who = ["-c", "user.name=lab", "-c", "user.email=lab@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *who, *arguments], cwd=self.source, env=self._environment, check=True)


def _applied(client: FleetClient) -> bool:
    try:
        client.apply("main")
    except TransientError:
        return False
    return True
