"""Compares what a scenario recorded with what the engine did: a list of differences per level."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from tests.conformance import execution, java_errors
from tests.conformance.execution import Failure, Outcome
from tests.conformance.kit import (
    Json,
    by_topic,
    matches,
    missing_and_unexpected,
    normalized_description,
    row_differences,
)
from tests.conformance.scenario import Level, Scenario
from tests.conformance.settings import Execution, Variant


@dataclass(frozen=True)
class Difference:
    """`where` is readable: a step, a topic, a store, a part of the topology."""

    where: str
    expected: Any
    got: Any


Levels = Mapping[Level, list[Difference]]
"""Differences per level that a scenario has; an empty list is a passed level."""


@dataclass(frozen=True)
class Comparison:
    executions: Mapping[Execution, Levels]
    has_same_text: bool | None = None
    """Whether the description is Java's to the last byte; None where none was recorded. Only for information: Java
    prints some lists in the order of a hash."""


def compare(scenario: Scenario) -> Comparison:
    """Run a scenario in every way the engine can, and compare every level it has."""
    logged = {way: execution.run(scenario, Variant(way, deduplicate=False)) for way in Execution}
    found = {way: _compare(scenario, way, outcome) for way, outcome in logged.items()}
    text = scenario.data.get("describe")
    return Comparison(found, None if text is None else text == logged[Execution.COMPILED].description)


def _compare(scenario: Scenario, way: Execution, logged: Outcome) -> Levels:
    """With both settings of `changelog.deduplicate`. Internal topics are only compared when every write is logged, as Java does;
    nothing else may depend on the setting.
    """
    deduplicated = execution.run(scenario, Variant(way, deduplicate=True))
    found = {level: list(differences(scenario, logged, level)) for level in scenario.levels}
    for level, different in found.items():
        if level is not Level.INTERNAL and not different:
            found[level] = [
                Difference(f"changelog.deduplicate=true, {difference.where}", difference.expected, difference.got)
                for difference in differences(scenario, deduplicated, level)
            ]
    return found


def differences(scenario: Scenario, outcome: Outcome, level: Level) -> Iterator[Difference]:
    """What differs at one level. A failure on one side only, or of another kind, hides everything else."""
    failure = list(_failure_differences("before any step", scenario.error, outcome.failure))
    if failure:
        yield from failure
    else:
        yield from _LEVELS[level](scenario, outcome)


# --- failures ---------------------------------------------------------------------------------------------------------


def _failure_differences(where: str, expected: Json, got: Failure | None) -> Iterator[Difference]:
    want = None if expected is None else f"{expected['class']} at {_place(expected['at'])}"
    if got is None:
        if want is not None:
            yield Difference(where, want, "no error")
    elif expected is None:
        yield Difference(where, "no error", _shown(got))
    elif not _same_place(expected["at"], got.at) or not java_errors.stands_for(expected["class"], got.error):
        yield Difference(where, want, _shown(got))


def _same_place(expected: int | str, got: int | str) -> bool:
    """Where Java only finds out when it builds, finding out at the op is welcome."""
    return got == expected or (expected == "build" and isinstance(got, int))


def _place(at: int | str) -> str:
    return f"op {at}" if isinstance(at, int) else at


def _shown(failure: Failure) -> str:
    return f"{type(failure.error).__name__} at {_place(failure.at)}: {failure.error}"


# --- levels -----------------------------------------------------------------------------------------------------------


def _records(scenario: Scenario, outcome: Outcome) -> Iterator[Difference]:
    for index, step in enumerate(scenario.steps):
        where = _step_name(index, step)
        if index >= len(outcome.steps):
            yield Difference(where, "reached", "not reached: the script ended before")
            return
        yield from _failure_differences(where, step.get("error"), outcome.steps[index].failure)
        yield from _topic_differences(scenario, where, step["out"], outcome.steps[index].out, internal=False)


def _internal(scenario: Scenario, outcome: Outcome) -> Iterator[Difference]:
    for index, (step, got) in enumerate(zip_longest(scenario.steps, outcome.steps)):
        out = [] if got is None else got.out
        yield from _topic_differences(scenario, _step_name(index, step), step["out"], out, internal=True)


def _topic_differences(
    scenario: Scenario, where: str, expected: list[Json], got: list[Json], *, internal: bool
) -> Iterator[Difference]:
    left, right = by_topic(_comparable(expected)), by_topic(got)
    for topic in sorted(left.keys() | right.keys()):
        if _is_internal(scenario, topic) != internal:
            continue
        want, have = left.get(topic, []), right.get(topic, [])
        if _is_suppress_changelog(scenario, topic):
            want, have = sorted(want, key=repr), sorted(have, key=repr)
        if not matches(want, have):
            yield Difference(f"{where}, topic {topic}", want, have)


def _comparable(records: Iterable[Json]) -> Iterator[Json]:
    for record in records:
        if len(record) == 5:
            yield [*record[:4], java_errors.comparable_headers(record[4])]
        else:
            yield record


def _is_internal(scenario: Scenario, topic: str) -> bool:
    return topic not in scenario.topics and not topic.startswith("#")


def _is_suppress_changelog(scenario: Scenario, topic: str) -> bool:
    """Java writes these in the order of a hash set."""
    names = [op["suppressed"].get("name") for op in scenario.ops if op["op"] == "suppress"]
    return "KTABLE-SUPPRESS-" in topic or any(topic.endswith(f"-{name}-store-changelog") for name in names if name)


def _dropped(scenario: Scenario, outcome: Outcome) -> Iterator[Difference]:
    for index, (step, got) in enumerate(zip_longest(scenario.steps, outcome.steps)):
        count = None if got is None else got.dropped
        if count != step.get("dropped", 0):
            yield Difference(_step_name(index, step), step.get("dropped", 0), count)
    if outcome.dropped != scenario.data["dropped"]:
        yield Difference("in total", scenario.data["dropped"], outcome.dropped)


def _stores(scenario: Scenario, outcome: Outcome) -> Iterator[Difference]:
    if any("error" in step for step in scenario.steps):
        return  # a failed task has no stores to look at any more: nothing is promised about them, and nothing was recorded
    expected = scenario.data["stores"]
    for name in sorted(expected.keys() | outcome.stores.keys()):
        if name not in expected or name not in outcome.stores:
            yield Difference(f"store {name}", _presence(name in expected), _presence(name in outcome.stores))
        elif expected[name]["kind"] != "opaque":
            missing, unexpected = row_differences(expected[name]["rows"], outcome.stores[name])
            if missing or unexpected:
                yield Difference(f"store {name}", f"also {missing}", f"also {unexpected}")


def _presence(there: bool) -> str:
    return "a store" if there else "no such store"


def _topology(scenario: Scenario, outcome: Outcome) -> Iterator[Difference]:
    if "describe" in scenario.data:
        want, got = normalized_description(scenario.data["describe"]), normalized_description(outcome.description)
        for heading in sorted(want.keys() | got.keys()):
            for missing, unexpected in missing_and_unexpected(want.get(heading, []), got.get(heading, [])):
                yield Difference(f"description, {heading}", missing or "no such node", unexpected or "no such node")
    parts = {
        "branches": outcome.branches,
        "subtopologies": outcome.sub_topologies,
        "internal_topics": outcome.internal_topics,
    }
    for part, got_part in parts.items():
        if part in scenario.data:
            yield from _mapping_differences(part, scenario.data[part], got_part)


def _mapping_differences(what: str, expected: dict[str, Json], got: dict[str, Json]) -> Iterator[Difference]:
    for name in sorted(expected.keys() | got.keys()):
        if expected.get(name) != got.get(name):
            yield Difference(f"{what}, {name}", expected.get(name), got.get(name))


def _step_name(index: int, step: dict[str, Json]) -> str:
    return f"step {index} pipe {step['pipe']}" if "pipe" in step else f"step {index} advance {step['advance']}"


_LEVELS: dict[Level, Callable[[Scenario, Outcome], Iterator[Difference]]] = {
    Level.RECORDS: _records,
    Level.DROPPED: _dropped,
    Level.INTERNAL: _internal,
    Level.STORES: _stores,
    Level.TOPOLOGY: _topology,
}
