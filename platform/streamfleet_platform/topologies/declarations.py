"""Whether an app reads and writes what its definition says. Called where a lock and a definition meet: validate, plan, apply.

Inputs and outputs are the fleet's lineage; a topic that only the code knows would be missing from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streamfleet_platform.definitions.fleet import App, topic_of
from streamfleet_platform.definitions.layers import place_of
from streamfleet_platform.definitions.validation import unknown_hint
from streamfleet_platform.errors import Problem
from streamfleet_platform.topologies.lock import TopologyLock


def declaration_problems(app: App, apps: Mapping[str, App], lock: TopologyLock) -> list[Problem]:
    inputs = {label: topic_of(apps, app, label) for label in app.spec.inputs}
    outputs = {label: output.topic for label, output in app.spec.outputs.items()}
    return [
        *_side(app, "inputs", "read", inputs, lock.sources(), "pattern:"),
        *_side(app, "outputs", "written", outputs, lock.sinks(), "chosen by "),
        *_stores(app, lock),
    ]


def _side(
    app: App, field: str, done: str, declared: Mapping[str, str | None], used: frozenset[str], open_prefix: str
) -> Iterator[Problem]:
    named = {topic for topic in used if not topic.startswith(open_prefix)}
    unused = {label: topic for label, topic in declared.items() if topic is not None and topic not in named}
    for topic in sorted(named - set(declared.values())):
        hint = unknown_hint(topic, unused.values()) if unused else "add it"
        yield Problem(
            place_of(app.document, "spec", field), f"topic {topic} is {done} by the code, but not among {field}", hint
        )
    if named != used:  # a pattern, or a function that names topics, may stand for any of those that are left
        return
    for label, topic in unused.items():
        place = place_of(app.document, "spec", field, label)
        yield Problem(place, f"{field}.{label}: topic {topic} is not {done} by the code", "remove it, or use it")


def _stores(app: App, lock: TopologyLock) -> Iterator[Problem]:
    known = lock.stores.keys() | lock.global_stores.keys()
    for name in app.spec.state.stores:
        if name not in known:
            place = place_of(app.document, "spec", "state", "stores", name)
            yield Problem(place, f"the code has no store {name}", unknown_hint(name, known))
    bounded = {name for name, policy in app.spec.state.stores.items() if policy.max_bytes is not None}
    for part in lock.sub_topologies:  # its stores share a database: what one of them takes cannot be told
        without = sorted(set(part["stores"]) - bounded)
        for name in sorted(set(part["stores"]) & bounded) if without else ():
            place = place_of(app.document, "spec", "state", "stores", name, "maxBytes")
            fact = f"store {name} shares a database with {', '.join(without)}, which has no bound"
            yield Problem(place, fact, "give all of them a maxBytes; together they bound the database")
