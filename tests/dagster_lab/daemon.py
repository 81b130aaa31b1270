"""Dagster beside a fleet: its processes as `make up` starts them, and what became of sensors, runs and observations."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from functools import partial
from typing import Any

from tests.dagster_lab.fleet import Fleet, until

from examples.demo.dagster_up import Dagster
from streamfleet_platform.api import TokenFile

_SENSOR = {"repositoryLocationName": "control", "repositoryName": "__repository__"}
_TICKS = """query($sensor: SensorSelector!) { sensorOrError(sensorSelector: $sensor) { ... on Sensor { sensorState {
  ticks(limit: 60) { id timestamp status runIds skipReason error { message } } } } } }"""
_SET_CURSOR = """mutation($sensor: SensorSelector!, $cursor: String) {
  setSensorCursor(sensorSelector: $sensor, cursor: $cursor) { __typename } }"""
_RUNS = """query($filter: RunsFilter!) { runsOrError(filter: $filter, limit: 100) { ... on Runs {
  results { id status creationTime startTime endTime tags { key value } } } } }"""
_OBSERVATIONS = """query($key: AssetKeyInput!) { assetOrError(assetKey: $key) { ... on Asset {
  assetObservations(limit: 100) { timestamp metadataEntries { label
    ... on TextMetadataEntry { text } ... on IntMetadataEntry { intValue } } } } } }"""


@dataclass(frozen=True)
class Tick:
    """One look of a sensor. Times are seconds since the epoch."""

    at: float
    status: str
    runs: tuple[str, ...]
    words: str


class Daemon:
    """Dagster's processes, daemon among them, for one fleet."""

    def __init__(self, dagster: Dagster, fleet: Fleet) -> None:
        self.dagster = dagster
        self._fleet = fleet
        self._tokens = TokenFile(fleet.data / "tokens.json")
        self._token = self._tokens.create("dagster", "operator", "all")

    def start_as_viewer(self) -> None:
        """It sees what is decided, and what it launches is refused. `stop`, then `start` makes it what it should be."""
        self.dagster.start(self._fleet.url, self._tokens.create("dagster-viewer", "viewer", "all"))
        self.dagster.wait_until_loaded()

    def start(self) -> None:
        """What does not run."""
        self.dagster.start(self._fleet.url, self._token)
        self.dagster.wait_until_loaded()

    def stop_daemon(self) -> None:
        """Only what ticks; pages and locations stay."""
        assert self.dagster.part("daemon").stop()

    def kill_daemon(self) -> None:
        """Without a word, as by a machine that fails."""
        pid = self.dagster.part("daemon").pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        until(lambda: not self.dagster.part("daemon").is_running, "it to be gone")

    def ticks(self, sensor: str) -> list[Tick]:
        """The newest first."""
        found = self.dagster.ask(_TICKS, sensor=_selector(sensor))["sensorOrError"]["sensorState"]["ticks"]
        return [
            Tick(
                float(each["timestamp"]),
                each["status"],
                tuple(each["runIds"]),
                (each["error"] or {}).get("message") or each["skipReason"] or "",
            )
            for each in found
        ]

    def replay(self, *sensors: str) -> list[Tick]:
        """Takes away what the sensors remember; of each, a tick that began after that."""
        before = {sensor: {tick.at for tick in self.ticks(sensor)} for sensor in sensors}
        for sensor in sensors:
            self.dagster.ask(_SET_CURSOR, sensor=_selector(sensor), cursor="")

        def next_one(sensor: str) -> Tick | None:
            ticks = [tick for tick in self.ticks(sensor) if tick.at not in before[sensor] and tick.status != "STARTED"]
            return ticks[-2] if len(ticks) > 1 else None  # one may have been under way as its memory went

        return [until(partial(next_one, sensor), f"{sensor} to look again") for sensor in sensors]

    def runs(self, job: str) -> list[dict[str, Any]]:
        """The oldest first."""
        found = self.dagster.ask(_RUNS, filter={"pipelineName": job})["runsOrError"]["results"]
        return list(reversed(found))

    def observations(self, *key: str) -> list[dict[str, Any]]:
        """Metadata by label, the oldest first."""
        asset = self.dagster.ask(_OBSERVATIONS, key={"path": list(key)})["assetOrError"]
        return [
            {entry["label"]: entry.get("text", entry.get("intValue")) for entry in each["metadataEntries"]}
            for each in reversed(asset.get("assetObservations", []))
        ]

    def close(self) -> None:
        self.dagster.stop()


def _selector(sensor: str) -> dict[str, str]:
    return {**_SENSOR, "sensorName": sensor}
