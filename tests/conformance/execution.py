"""Runs one scenario on the engine: builds its topology, plans it, plays its script, and writes down what happened.

The result is an Outcome in the terms of the file (JSON values, topic names, indices of ops and steps). It expects
nothing; comparing is `checks`. Only errors of the engine are part of an outcome: a mistake in the file leaves as
MalformedScenarioError.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.conformance import codecs, java_errors, settings
from tests.conformance.behaviours import StoreKinds
from tests.conformance.kit import Json, MalformedScenarioError, is_windowed, text
from tests.conformance.ops import OPS, Build, Op, OpFunction
from tests.conformance.papi_ops import PAPI_OPS
from tests.conformance.scenario import Scenario

import streamfleet as sf
from streamfleet.testing import TopologyTestDriver

DEFAULT_PARTITIONS = 4
_ADAPTER_ERRORS = (MalformedScenarioError,)


@dataclass(frozen=True)
class Failure:
    """`at` is the index of an op, or "config", "build", "assign", "driver", "step"."""

    at: int | str
    error: Exception


@dataclass(frozen=True)
class StepOutcome:
    out: list[list[Json]]
    dropped: int
    failure: Failure | None = None


@dataclass
class Outcome:
    failure: Failure | None = None
    """Before any step; then later fields are empty."""
    description: list[str] = field(default_factory=list)
    branches: dict[str, list[str]] = field(default_factory=dict)
    sub_topologies: dict[str, Json] = field(default_factory=dict)
    internal_topics: dict[str, Json] = field(default_factory=dict)
    steps: list[StepOutcome] = field(default_factory=list)
    dropped: int = 0
    stores: dict[str, list[Json]] = field(default_factory=dict)


class _StageFailedError(Exception):
    def __init__(self, at: int | str, error: Exception) -> None:
        super().__init__(f"{at}: {error}")
        self.failure = Failure(at, error)


def run(scenario: Scenario, variant: settings.Variant) -> Outcome:
    """Everything the engine does with a scenario, up to the first failure."""
    outcome = Outcome()
    try:
        with _Stage("config"):
            config = settings.config(scenario.data["config"], variant)
        build, topology = _build(scenario, config)
        outcome.branches = build.branches
        with _Stage("build"):
            outcome.description = str(topology.describe()).split("\n")
        with _Stage("assign"):
            _plan(scenario, topology, config, outcome)
        if "steps" in scenario.data:
            _play(scenario, topology, config, build, outcome)
    except _StageFailedError as failed:
        outcome.failure = failed.failure
    return outcome


class _Stage:
    """Says where an error of the engine happened; lets the adapter's own errors pass."""

    def __init__(self, at: int | str) -> None:
        self._at = at

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, _ADAPTER_ERRORS):
            raise _StageFailedError(self._at, error) from error


# --- the topology -----------------------------------------------------------------------------------------------------


def _build(scenario: Scenario, config: sf.StreamsConfig) -> tuple[Build, sf.Topology]:
    table = PAPI_OPS if scenario.is_papi else OPS
    builder = sf.Topology() if scenario.is_papi else sf.StreamsBuilder(config)
    build = Build(builder, StoreKinds.of(scenario.ops))
    for index, op in enumerate(scenario.ops):
        if op["op"] not in table:
            raise MalformedScenarioError(f"op {index} is unknown: {op['op']}")
        with _Stage(index):
            build.previous = _applied(table[op["op"]], op, build)
        if "id" in op:
            build.results[op["id"]] = build.previous
    if isinstance(builder, sf.Topology):
        return build, builder
    with _Stage("build"):
        return build, builder.build(config)


def _applied(function: OpFunction, op: Op, build: Build) -> Any:
    try:
        return function(op, build)
    except KeyError as error:
        if _is_raised_here(error):
            raise MalformedScenarioError(f"op {op['op']} lacks the parameter {error}: {op}") from error
        raise


def _is_raised_here(error: Exception) -> bool:
    """Whether the adapter itself raised an error, and not the engine that it called."""
    frames = traceback.extract_tb(error.__traceback__)
    return Path(frames[-1].filename).parent == Path(__file__).parent


def _plan(scenario: Scenario, topology: sf.Topology, config: sf.StreamsConfig, outcome: Outcome) -> None:
    plan = topology.plan(partitions=_partitions(scenario), config=config)
    outcome.sub_topologies = {
        str(number): {
            "sources": list(found.sources),
            "sinks": list(found.sinks),
            "repartition": list(found.repartition_topics),
            "changelogs": list(found.changelog_topics),
            "tasks": found.tasks,
        }
        for number, found in plan.sub_topologies.items()
    }
    outcome.internal_topics = {
        name: {"partitions": topic.partitions, "configs": dict(topic.configs)}
        for name, topic in plan.internal_topics.items()
    }


def _partitions(scenario: Scenario) -> dict[str, int]:
    """Counts of the topics that exist outside: those the file gives, and 4 for every other that it mentions."""
    named = [topic for op in scenario.ops for topic in (*op.get("topics", ()), op.get("topic"))]
    mentioned = {topic for topic in (*named, *scenario.topics) if isinstance(topic, str)}
    given: dict[str, int] = scenario.data.get("partitions", {})
    return dict.fromkeys(mentioned, DEFAULT_PARTITIONS) | given


# --- the script -------------------------------------------------------------------------------------------------------


def _play(scenario: Scenario, topology: sf.Topology, config: sf.StreamsConfig, build: Build, outcome: Outcome) -> None:
    with _Stage("driver"):
        driver = TopologyTestDriver(topology, config, now=scenario.data.get("wall_clock", 0))
    try:
        for step in scenario.steps:
            outcome.steps.append(_step(scenario, driver, build, step))
            if outcome.steps[-1].failure is not None:
                break
        outcome.dropped = driver.metrics().dropped_records_total
        if not outcome.steps or outcome.steps[-1].failure is None:  # the stores of a failed task may be unreadable
            outcome.stores = {name: list(_rows(store, scenario)) for name, store in driver.stores().items()}
    finally:
        driver.close()


def _step(scenario: Scenario, driver: TopologyTestDriver, build: Build, step: dict[str, Json]) -> StepOutcome:
    dropped_before = driver.metrics().dropped_records_total
    failure = None
    try:
        if "pipe" in step:
            driver.pipe_raw(*_input(scenario, *step["pipe"]))
        else:
            driver.advance_wall_clock(step["advance"])
    except _ADAPTER_ERRORS:
        raise
    except Exception as error:
        failure = Failure("step", error)
    sent = [_rendered(scenario, record) for record in driver.drain()]
    seen = [[tag, _json(key), _json(value), None] for tag, key, value in build.seen]
    build.seen.clear()
    return StepOutcome(sent + seen, driver.metrics().dropped_records_total - dropped_before, failure)


def _input(
    scenario: Scenario, topic: str, key: Json, value: Json, timestamp: int, headers: Json = ()
) -> tuple[str, bytes | None, bytes | None, int, tuple[tuple[str, bytes | None], ...]]:
    serdes = scenario.topics[topic]
    encoded = tuple((name, None if content is None else content.encode()) for name, content in headers)
    return topic, codecs.encode(serdes["key"], key), codecs.encode(serdes["value"], value), timestamp, encoded


def _rendered(scenario: Scenario, record: Any) -> list[Json]:
    """A produced record as the file would show it: by the serdes of declared topics, as hex elsewhere."""
    serdes = scenario.topics.get(record.topic, {"key": "hex", "value": "hex"})
    header_serde = "string" if record.topic in scenario.topics else "hex"
    shown = [
        record.topic,
        codecs.decode(serdes["key"], record.key),
        codecs.decode(serdes["value"], record.value),
        record.timestamp,
    ]
    headers = [[name, codecs.decode(header_serde, content)] for name, content in record.headers]
    if record.topic in scenario.topics:
        headers = java_errors.in_java_words(headers)
    return [*shown, headers] if headers else shown


# --- the stores -------------------------------------------------------------------------------------------------------


def _rows(store: Any, scenario: Scenario) -> Iterator[Json]:
    """The rows of a store: [key, value], with the timestamp behind it where the store keeps one; none if nobody can read them."""
    if isinstance(store, sf.VersionedKeyValueStore):
        yield from _versions(store, scenario)
        return
    if not hasattr(store, "all") and not hasattr(store, "fetch_range"):
        return
    with store.fetch_range(None, None) if isinstance(store, sf.SessionStore) else store.all() as entries:
        for key, value in entries:
            if isinstance(value, sf.ValueAndTimestamp):
                yield [_json(key), _json(value.value), value.timestamp]
            else:
                yield [_json(key), _json(value)]


def _versions(store: sf.VersionedKeyValueStore[Any, Any], scenario: Scenario) -> Iterator[Json]:
    """[key, time, "value@from"] for every key and time of the script, misses left out; and the latest, with null as time."""
    pipes = [step["pipe"] for step in scenario.steps if "pipe" in step]
    keys = sorted({pipe[1] for pipe in pipes if isinstance(pipe[1], str)})
    for key in keys:
        for time in (None, *sorted({pipe[3] for pipe in pipes})):
            found = store.get(key, time)
            if found is not None or time is None:
                yield [key, time, None if found is None else f"{text(found.value)}@{found.timestamp}"]


def _json(value: Any) -> Json:
    if isinstance(value, bytes):
        return value.hex()
    if is_windowed(value):
        return [_json(value.key), value.window.start, value.window.end]
    return value
