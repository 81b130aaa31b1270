"""A scenario file as a value: loaded and checked for shape.

Called by `run` and by the tests. Running a scenario is `execution`; comparing is `checks`.
"""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass
from pathlib import Path

from tests.conformance.kit import Json, MalformedScenarioError


class Level(enum.Enum):
    """What is compared, each for itself. The values are the columns of the report."""

    RECORDS = "records"
    """What was written to the user's topics, and the errors of steps."""
    DROPPED = "dropped"
    INTERNAL = "internal"
    """Repartition and changelog topics, byte for byte."""
    STORES = "stores"
    TOPOLOGY = "topology"
    """Description, branches, sub-topologies, internal topics, and errors of building and planning."""


@dataclass(frozen=True)
class Scenario:
    path: Path
    name: str
    family: str
    data: dict[str, Json]

    @property
    def ops(self) -> list[dict[str, Json]]:
        return list(self.data["topology"])

    @property
    def topics(self) -> dict[str, Json]:
        return dict(self.data["topics"])

    @property
    def is_papi(self) -> bool:
        return self.data.get("api") == "papi"

    @property
    def steps(self) -> list[dict[str, Json]]:
        return list(self.data.get("steps", ()))

    @property
    def error(self) -> dict[str, Json] | None:
        """The recorded failure before any step; a step's failure stands in the step."""
        error: dict[str, Json] | None = self.data.get("error")
        return error

    @property
    def levels(self) -> tuple[Level, ...]:
        """The levels this file says something about. A failure of the driver counts to the records it prevents."""
        if self.steps:
            return tuple(Level)
        if self.error is not None and self.error["at"] == "driver":
            return (Level.RECORDS, Level.TOPOLOGY)
        return (Level.TOPOLOGY,)


_REQUIRED = {"name": str, "family": str, "config": dict, "topics": dict, "topology": list}
_STEP_FIELDS = ("pipe", "advance")


def load(path: Path) -> Scenario:
    """Read one file; whatever is wrong with it is a MalformedScenarioError."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise MalformedScenarioError(f"cannot be read as JSON: {error}") from error
    _check_shape(data)
    return Scenario(path, data["name"], data["family"], data)


def _check_shape(data: Json) -> None:
    if not isinstance(data, dict):
        raise MalformedScenarioError("is not a JSON object")
    if data.get("format") != 1:
        raise MalformedScenarioError(f"has format {data.get('format')!r}, only format 1 is known")
    for field, kind in _REQUIRED.items():
        if not isinstance(data.get(field), kind):
            raise MalformedScenarioError(f"field {field!r} is missing or not a {kind.__name__}")
    for index, op in enumerate(data["topology"]):
        if not isinstance(op, dict) or not isinstance(op.get("op"), str):
            raise MalformedScenarioError(f"op {index} has no name")
    for topic, serdes in data["topics"].items():
        if not isinstance(serdes, dict) or not {"key", "value"} <= serdes.keys():
            raise MalformedScenarioError(f"topic {topic} does not name its two serdes")
    if "error" in data and not {"at", "class"} <= data["error"].keys():
        raise MalformedScenarioError("field 'error' needs 'at' and 'class'")
    if "error" not in data and "describe" not in data:
        raise MalformedScenarioError("says neither what was built nor how building failed")
    _check_steps(data)


def _check_steps(data: dict[str, Json]) -> None:
    steps = data.get("steps", [])
    for index, step in enumerate(steps):
        if not isinstance(step, dict) or sum(field in step for field in _STEP_FIELDS) != 1:
            raise MalformedScenarioError(f"step {index} is neither a pipe nor an advance")
        if not isinstance(step.get("out"), list):
            raise MalformedScenarioError(f"step {index} has no 'out'")
        if "pipe" in step and step["pipe"][0] not in data["topics"]:
            raise MalformedScenarioError(f"step {index} writes to topic {step['pipe'][0]}, which is not declared")
    if steps and not {"dropped", "stores"} <= data.keys():
        raise MalformedScenarioError("has steps but not the final 'dropped' and 'stores'")


def files_in(directory: Path) -> list[Path]:
    """The scenario files of a directory, in the order of their names."""
    return sorted(directory.glob("*.json"))
