"""What loading gives: the fleet, its apps with the place of every value, and how they feed one another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from streamfleet_platform.definitions.layers import BUILT_IN_TIERS, EffectiveValue, effective_values
from streamfleet_platform.definitions.yaml_nodes import Node
from streamfleet_platform.model.app_definition import AppDefinition, AppSpec
from streamfleet_platform.model.fleet_definition import FleetDefinition


@dataclass(frozen=True)
class App:
    """One app of the fleet."""

    file: str
    definition: AppDefinition
    document: Node
    """The file with what tier and fleet add to it."""

    @property
    def name(self) -> str:
        return self.definition.metadata.name

    @property
    def spec(self) -> AppSpec:
        return self.definition.spec

    def values(self) -> list[EffectiveValue]:
        """Every value and which file and line set it."""
        return effective_values(self.document, self.definition)


@dataclass(frozen=True, order=True)
class Flow:
    """Records go from an app to another through a topic."""

    upstream: str
    downstream: str
    topic: str


@dataclass(frozen=True)
class Lineage:
    """Who feeds whom. Cycles are allowed, and said: a reset or a schema change travels around them."""

    flows: tuple[Flow, ...]
    cycles: tuple[tuple[str, ...], ...]

    def downstream_of(self, app: str) -> frozenset[str]:
        """All apps that records of this one reach, itself only if it is part of a cycle."""
        reached: set[str] = set()
        waiting = [app]
        while waiting:
            current = waiting.pop()
            for flow in self.flows:
                if flow.upstream == current and flow.downstream not in reached:
                    reached.add(flow.downstream)
                    waiting.append(flow.downstream)
        return frozenset(reached)


@dataclass(frozen=True)
class Fleet:
    """All definitions of a tree, checked."""

    definition: FleetDefinition
    apps: Mapping[str, App]
    lineage: Lineage
    commit: str | None
    """Where they are from, if from Git."""
    document: Node | None = None
    """fleet.yaml."""

    def priority_of(self, app: str) -> int:
        """Who restores first."""
        return priority_of_tier(self.definition, self.apps[app].definition.metadata.tier)


def priority_of_tier(fleet: FleetDefinition, tier: str | None) -> int:
    declared = None if tier is None else fleet.spec.tiers.get(tier)
    if declared is not None and "priority" in declared.model_fields_set:
        return declared.priority
    return BUILT_IN_TIERS[tier or "silver"].priority if (tier or "silver") in BUILT_IN_TIERS else 50


def topic_of(apps: Mapping[str, App], app: App, label: str) -> str | None:
    """The topic an input reads; None if it refers to something that is not there."""
    source = app.spec.inputs[label]
    if source.topic is not None:
        return source.topic
    upstream = apps.get(source.app or "")
    output = None if upstream is None else upstream.spec.outputs.get(source.output or "")
    return None if output is None else output.topic


def lineage_of(apps: Mapping[str, App]) -> Lineage:
    writers: dict[tuple[str, str], list[str]] = {}
    for app in apps.values():
        for output in app.spec.outputs.values():
            writers.setdefault((app.spec.cluster, output.topic), []).append(app.name)
    flows: set[Flow] = set()
    for app in apps.values():
        for label in app.spec.inputs:
            topic = topic_of(apps, app, label)
            if topic is not None:
                flows |= {Flow(writer, app.name, topic) for writer in writers.get((app.spec.cluster, topic), ())}
    return Lineage(tuple(sorted(flows)), tuple(sorted(_cycles(sorted(apps), flows))))


def _cycles(names: Iterable[str], flows: Iterable[Flow]) -> list[tuple[str, ...]]:
    """Strongly connected groups, each sorted: Kosaraju's two passes, without recursion."""
    after: dict[str, list[str]] = {}
    before: dict[str, list[str]] = {}
    for flow in flows:
        after.setdefault(flow.upstream, []).append(flow.downstream)
        before.setdefault(flow.downstream, []).append(flow.upstream)
    order: list[str] = []
    seen: set[str] = set()
    for root in names:
        order += _finished(root, after, seen)
    seen.clear()
    groups = [_finished(root, before, seen) for root in reversed(order)]
    return [
        tuple(sorted(group)) for group in groups if len(group) > 1 or (group and group[0] in after.get(group[0], ()))
    ]


def _finished(root: str, edges: Mapping[str, list[str]], seen: set[str]) -> list[str]:
    """What is reached from a root and not seen yet, children before parents."""
    if root in seen:
        return []
    seen.add(root)
    done: list[str] = []
    stack = [(root, iter(edges.get(root, ())))]
    while stack:
        name, rest = stack[-1]
        following = next((other for other in rest if other not in seen), None)
        if following is None:
            done.append(name)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(edges.get(following, ()))))
    return done
