"""Judges scenario files: passed, failed, or deviating on purpose. No file can stop the run."""

from __future__ import annotations

import enum
import traceback
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.conformance import checks, scenario
from tests.conformance.checks import Difference
from tests.conformance.deviations import Deviation
from tests.conformance.kit import MalformedScenarioError
from tests.conformance.scenario import Level, Scenario


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
    levels: Mapping[Level, list[Difference]] = field(default_factory=dict)
    """Differences per compared level; an empty list is a passed level."""
    note: str = ""
    """Why the scenario deviates, or what kept it from being compared at all."""
    has_same_text: bool | None = None
    trace: str = ""


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
    verdict, note = _verdict(comparison.levels, deviation)
    return Result(found.name, found.family, verdict, comparison.levels, note, comparison.has_same_text)


def _verdict(levels: Mapping[Level, list[Difference]], deviation: Deviation | None) -> tuple[Verdict, str]:
    differing = {level for level, differences in levels.items() if differences}
    allowed = frozenset[Level]() if deviation is None else deviation.levels
    if differing - allowed:
        return Verdict.FAILED, ""
    if deviation is None:
        return Verdict.PASSED, ""
    if not differing:
        return Verdict.FAILED, "matches the recording, but deviations.toml says that it differs; remove the entry"
    return Verdict.DEVIATING, deviation.reason
