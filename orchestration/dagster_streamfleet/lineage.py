"""Who reads what: the apps of a snapshot become nodes with their upstream keys. Pure; assets.py makes specs of them.

    topic ──> app ──> sub-0 ──> repartition ──> sub-1 ──> store ──> changelog
                                                  └────> topic (of the app that writes it)

A changelog hangs off its store, never the other way round: restoring is not lineage. Apps that feed each other in a circle are
cut at one edge per circle, always the same one, and the node remembers what was cut: Dagster loads a circle without a word and
fails later, when it sorts the assets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Literal

from dagster import AssetKey

from dagster_streamfleet.translator import SHARED_TOPICS, FleetTranslator
from streamfleet_platform.views import AppDetail, StoreView, TopicView

NodeRole = Literal["app", "sub-topology", "topic", "repartition", "changelog", "store"]


@dataclass(frozen=True)
class Node:
    """One asset to be."""

    key: AssetKey
    role: NodeRole
    group: str
    upstream: frozenset[AssetKey]
    app: AppDetail | None = None
    """Whose it is; none: nobody's in this fleet."""
    topic: TopicView | None = None
    store: StoreView | None = None
    sub_topology: int | None = None
    cut: tuple[AssetKey, ...] = field(default=())
    """Upstream keys left out, because they would close a circle."""


def lineage(apps: Sequence[AppDetail], translator: FleetTranslator) -> list[Node]:
    """Every node once, without circles, in a stable order."""
    nodes: dict[AssetKey, Node] = {}
    for app in sorted(apps, key=lambda app: app.name):
        for node in _nodes_of(app, translator):
            known = nodes.get(node.key)
            nodes[node.key] = node if known is None else _merged(known, node)
    return list(without_circles(nodes).values())


def _merged(one: Node, other: Node) -> Node:
    """A topic that several apps name: its writer's, with everybody's upstream."""
    writer = one if one.app is not None else other
    return replace(writer, upstream=one.upstream | other.upstream)


def _nodes_of(app: AppDetail, translator: FleetTranslator) -> Iterable[Node]:
    group = translator.group(app)
    keys = _topic_keys(app, translator)
    inputs = [topic for topic in app.topics if topic.role == "input"]
    written = {sink for sub in app.sub_topologies for sink in sub.sinks}
    # what the app writes and reads again itself cannot be above its page, which is above all of it
    foreign = frozenset(keys[topic.name] for topic in inputs if topic.name not in written)
    page = translator.app_key(app.name)
    yield Node(page, "app", group, foreign, app=app)
    for topic in inputs:
        if topic.name not in written:
            yield Node(keys[topic.name], "topic", SHARED_TOPICS, frozenset(), topic=topic)
    for sub in app.sub_topologies:
        key = translator.sub_topology_key(app.name, sub.id)
        above = frozenset(keys[source] for source in sub.sources if source in keys)
        yield Node(key, "sub-topology", group, above | {page}, app=app, sub_topology=sub.id)
        for sink in sub.sinks:
            topic = next((each for each in app.topics if each.name == sink), TopicView(name=sink, role="output"))
            role: NodeRole = "repartition" if topic.role == "repartition" else "topic"
            key_of_sink = keys.get(sink, translator.topic_key(sink))
            yield Node(key_of_sink, role, group, frozenset({key}), app=app, topic=topic)
    yield from _state_of(app, translator, group)


def _state_of(app: AppDetail, translator: FleetTranslator, group: str) -> Iterable[Node]:
    topics = {topic.name: topic for topic in app.topics}
    for store in app.stores:
        key = translator.internal_key(app.name, "store", store.name)
        owner = translator.sub_topology_key(app.name, store.sub_topology)
        yield Node(key, "store", group, frozenset({owner}), app=app, store=store)
        topic = topics.get(store.changelog) if store.changelog else None
        # a source topic may serve as changelog: then it is drawn as the topic it is
        if store.changelog is not None and (topic is None or topic.role == "changelog"):
            topic = topic or TopicView(name=store.changelog, role="changelog", store=store.name)
            changelog = translator.internal_key(app.name, "changelog", store.changelog)
            yield Node(changelog, "changelog", group, frozenset({key}), app=app, topic=topic, store=store)


def _topic_keys(app: AppDetail, translator: FleetTranslator) -> dict[str, AssetKey]:
    keys = {name: translator.topic_key(name) for sub in app.sub_topologies for name in (*sub.sources, *sub.sinks)}
    for topic in app.topics:
        if topic.role == "repartition":
            keys[topic.name] = translator.internal_key(app.name, "repartition", topic.name)
        else:
            keys[topic.name] = translator.topic_key(topic.name)
    return keys


def without_circles(nodes: Mapping[AssetKey, Node]) -> dict[AssetKey, Node]:
    """The same nodes, with one edge of every circle cut: where a topic is read, by the app that comes first by its name."""
    upstream = {key: sorted(node.upstream & nodes.keys()) for key, node in sorted(nodes.items())}
    cuts: dict[AssetKey, list[AssetKey]] = {}
    knotted = _knotted(upstream)
    left = {key: [each for each in upstream[key] if each in knotted] for key in upstream if key in knotted}
    while (circle := _circle(left)) is not None:
        above, here = min(pairwise(circle), key=lambda edge: _worth(nodes[edge[0]], nodes[edge[1]]))
        left[here].remove(above)
        cuts.setdefault(here, []).append(above)
    return {
        key: replace(node, upstream=node.upstream - set(cuts[key]), cut=tuple(sorted(cuts[key])))
        if key in cuts
        else node
        for key, node in nodes.items()
    }


def _worth(above: Node, here: Node) -> tuple[bool, str, AssetKey]:
    """What an edge tells; the least is cut. That an app's parts follow one another says more than that it reads a topic."""
    return above.role != "topic", here.app.name if here.app is not None else "", here.key


def _circle(upstream: Mapping[AssetKey, Iterable[AssetKey]]) -> list[AssetKey] | None:
    """Some circle, from above to below; its first is its last."""
    try:
        TopologicalSorter(upstream).prepare()
    except CycleError as error:
        circle: list[AssetKey] = error.args[1]
        return circle
    return None


def _knotted(upstream: Mapping[AssetKey, Iterable[AssetKey]]) -> set[AssetKey]:
    """What cannot be sorted, neither from above nor from below: circles, and what lies between them. Mostly nothing."""
    downstream: dict[AssetKey, list[AssetKey]] = {key: [] for key in upstream}
    for key, above in upstream.items():
        for each in above:
            downstream[each].append(key)
    return set(upstream) - _sortable(upstream) - _sortable(downstream)


def _sortable(graph: Mapping[AssetKey, Iterable[AssetKey]]) -> set[AssetKey]:
    sorter, found = TopologicalSorter(graph), set[AssetKey]()
    with suppress(CycleError):  # it sorts all the same, as far as that goes
        sorter.prepare()
    while ready := sorter.get_ready():
        found.update(ready)
        sorter.done(*ready)
    return found
