"""Judges scenario files: passed, failed, or deviating on purpose. No file can stop the run."""

from __future__ import annotations

import enum
import traceback
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.conformance import checks, scenario
from tests.conformance.checks import Difference, Levels
from tests.conformance.deviations import Deviation
from tests.conformance.kit import MalformedScenarioError
from tests.conformance.scenario import Level, Scenario
from tests.conformance.settings import Execution


class Verdict(enum.Enum):
    PASSED = "passed"
    FAILED = "failed"
    DEVIATING = "deviating"
    """Differs where deviations.toml says so, and nowhere else."""


@dataclass(frozen=True)
class Result:
    name: str
    family: str
    verdict: Verdict
    executions: Mapping[Execution, Levels] = field(default_factory=dict)
    """Differences per execution and compared level; an empty list is a passed level."""
    note: str = ""
    """Why the scenario deviates, or what kept it from being compared at all."""
    has_same_text: bool | None = None
    trace: str = ""

    @property
    def levels(self) -> dict[Level, list[Difference]]:
        """The differences of all executions together, each with the name of its own."""
        merged: dict[Level, list[Difference]] = {}
        for execution, levels in self.executions.items():
            for level, differences in levels.items():
                merged.setdefault(level, []).extend(
                    replace(found, where=f"{execution.value}, {found.where}") for found in differences
                )
        return merged


@dataclass(frozen=True)
class Selection:
    """Which files of a directory are judged."""

    family: str | None = None
    name: str | None = None

    def takes(self, found: Scenario) -> bool:
        return self.family in (None, found.family) and self.name in (None, found.name)


def judge_all(files: Iterable[Path], selection: Selection, deviations: Mapping[str, Deviation]) -> Iterator[Result]:
    """One result per selected file, as soon as it is known."""
    for path in files:
        try:
            found = scenario.load(path)
        except MalformedScenarioError as error:
            if selection.family is None and selection.name in (None, path.stem):
                yield Result(path.name, "(malformed)", Verdict.FAILED, note=f"{path.name} {error}")
            continue
        if selection.takes(found):
            yield judge(found, deviations.get(found.name))


def judge(found: Scenario, deviation: Deviation | None) -> Result:
    """The verdict on one scenario. Whatever it raises is a failure of this scenario alone."""
    try:
        comparison = checks.compare(found)
    except MalformedScenarioError as error:
        return Result(found.name, found.family, Verdict.FAILED, note=f"{found.path.name}: {error}")
    except Exception as error:
        note = f"could not be compared: {type(error).__name__}: {error}"
        return Result(found.name, found.family, Verdict.FAILED, note=note, trace=traceback.format_exc())
    verdicts = [_verdict(levels, deviation) for levels in comparison.executions.values()]
    # A deviation is about the engine: one that an execution does not show is a failure, and so is one it adds.
    verdict, note = next((given for given in verdicts if given[0] is Verdict.FAILED), verdicts[0])
    return Result(found.name, found.family, verdict, comparison.executions, note, comparison.has_same_text)


def _verdict(levels: Levels, deviation: Deviation | None) -> tuple[Verdict, str]:
    differing = {level for level, differences in levels.items() if differences}
    allowed = frozenset[Level]() if deviation is None else deviation.levels
    if differing - allowed:
        return Verdict.FAILED, ""
    if deviation is None:
        return Verdict.PASSED, ""
    if not differing:
        return Verdict.FAILED, "matches the recording, but deviations.toml says that it differs; remove the entry"
    return Verdict.DEVIATING, deviation.reason
