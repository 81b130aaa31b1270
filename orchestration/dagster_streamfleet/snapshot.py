"""The fleet as a code location last saw it: taken from the server when the location loads, kept in a file beside it.

The file has two uses. A location that loads while the server is away shows the fleet of the last snapshot, and says so. And
processes that rebuild the location to carry out a run read the very snapshot it was loaded with: they neither ask the server a
second time nor see another fleet.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from dagster import get_dagster_logger
from pydantic import BaseModel, ConfigDict

from streamfleet_platform import FleetClient, FleetError, NotFoundError, SlowDownError
from streamfleet_platform.views import AppDetail

T = TypeVar("T")

_PARALLEL = 8
"""Requests at a time: apps are asked for one by one."""
_PATIENCE_SECONDS = 300.0
_KEPT = 5
"""Snapshots: runs that wait in the queue may still need an older one."""


class FleetSnapshot(BaseModel):
    """All apps, their pictures, and why it is not the newest, if it is not."""

    model_config = ConfigDict(frozen=True)

    taken_at: datetime
    apps: tuple[AppDetail, ...] = ()
    pictures: dict[str, str] = {}
    """SVG by app."""
    stale_reason: str | None = None


def take(client: FleetClient, *, with_pictures: bool = True) -> FleetSnapshot:
    """Ask the server for everything. An app that is retired meanwhile is left out."""
    taken_at, give_up_at = datetime.now(UTC), time.monotonic() + _PATIENCE_SECONDS
    names = [app.name for app in client.apps() if app.desired != "retired"]

    def one(name: str) -> tuple[AppDetail, str] | None:
        try:
            app = _patiently(lambda: client.app(name), give_up_at)
            return app, _patiently(lambda: client.topology_svg(name), give_up_at) if with_pictures else ""
        except NotFoundError:
            return None

    with ThreadPoolExecutor(_PARALLEL) as pool:
        found = [each for each in pool.map(one, names) if each is not None]
    pictures = {app.name: picture for app, picture in found if picture}
    return FleetSnapshot(taken_at=taken_at, apps=tuple(app for app, _ in found), pictures=pictures)


def _patiently(ask: Callable[[], T], give_up_at: float) -> T:
    """The server grants so many calls a second: a large fleet is asked for over a while."""
    while True:
        try:
            return ask()
        except SlowDownError as error:
            if time.monotonic() > give_up_at:
                raise
            time.sleep(error.retry_after)


class SnapshotFiles:
    """Snapshots in a directory, named by their content."""

    def __init__(self, directory: Path, name: str = "fleet", *, with_pictures: bool = True) -> None:
        self._directory = directory
        self._name = name
        self._with_pictures = with_pictures

    def take_or_last(self, client: FleetClient) -> tuple[FleetSnapshot, Path]:
        """The server's, or the last one with the reason; an empty one where there has never been any."""
        try:
            snapshot = take(client, with_pictures=self._with_pictures)
        except FleetError as error:
            get_dagster_logger("streamfleet").warning("showing the fleet of the last time: %s", error)
            snapshot = self._last().model_copy(update={"stale_reason": str(error)})
        return snapshot, self.save(snapshot)

    def save(self, snapshot: FleetSnapshot) -> Path:
        text = snapshot.model_dump_json()
        self._directory.mkdir(parents=True, exist_ok=True)
        path = self._directory / f"{self._name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"
        unfinished = path.with_suffix(f".{os.getpid()}")
        unfinished.write_text(text, "utf-8")
        unfinished.replace(path)
        for old in self._files()[:-_KEPT]:
            old.unlink(missing_ok=True)
        return path

    @staticmethod
    def read(path: Path) -> FleetSnapshot:
        return FleetSnapshot.model_validate_json(path.read_bytes())

    def _last(self) -> FleetSnapshot:
        files = self._files()
        return self.read(files[-1]) if files else FleetSnapshot(taken_at=datetime.now(UTC))

    def _files(self) -> list[Path]:
        return sorted(self._directory.glob(f"{self._name}-*.json"), key=lambda path: path.stat().st_mtime_ns)


def default_directory() -> Path:
    """In Dagster's home; without one, in the user's cache."""
    home = os.environ.get("DAGSTER_HOME")
    if home:
        return Path(home) / "streamfleet"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "streamfleet" / "dagster"
