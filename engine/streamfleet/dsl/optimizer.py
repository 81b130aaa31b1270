"""What `topology.optimization` asks for: the graph rewritten before it becomes a Topology. Called by StreamsBuilder.build.

    reuse.ktable.source.topics   a table's own topic restores its store: no changelog
    merge.repartition.topics     one repartition topic behind a key change, instead of one for each operator that needs it
    single.store.self.join       a stream joined with itself keeps its records once

A graph that was rewritten stays so, and is not rewritten again. `process` counts as a change of the key and `process_values` as
one of the value, unless the setting of the original that would say so is given and says no.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from streamfleet.config import StreamsConfig
from streamfleet.dsl.graph import GraphNode, OwnProcessorGraphNode, RepartitionGraphNode, TableSourceGraphNode
from streamfleet.dsl.join_nodes import StreamJoinGraphNode
from streamfleet.dsl.repartition import repartition_node
from streamfleet.dsl.scope import BuilderScope

T = TypeVar("T")

REUSE_SOURCE_TOPICS = "reuse.ktable.source.topics"
MERGE_REPARTITION_TOPICS = "merge.repartition.topics"
SINGLE_STORE_SELF_JOIN = "single.store.self.join"


def optimize(scope: BuilderScope, config: StreamsConfig) -> None:
    chosen = config.optimizations
    if REUSE_SOURCE_TOPICS in chosen:
        for node in scope.graph.nodes():
            if isinstance(node, TableSourceGraphNode):
                node.reuses_source_topic = True
    if MERGE_REPARTITION_TOPICS in chosen:
        if not config.optimizer_minds_processors:
            for node in scope.graph.nodes():
                if isinstance(node, OwnProcessorGraphNode):
                    node.changes_key = node.changes_value = False
        _merge_repartition_topics(scope)
    if SINGLE_STORE_SELF_JOIN in chosen:
        for node in list(scope.graph.nodes()):
            if isinstance(node, StreamJoinGraphNode):
                _join_with_one_store(node)


def _join_with_one_store(join: StreamJoinGraphNode) -> None:
    if join.is_self_join or len(join.parents) != 1:
        return
    (parent,) = join.parents
    other_windowed = join.sides[1][2]
    (right,) = (child for child in parent.children if child.name == other_windowed)
    parent.remove_child(right)
    join.is_self_join = True


def _merge_repartition_topics(scope: BuilderScope) -> None:
    for changer, repartitions in _by_key_change(list(scope.graph.nodes())).items():
        if repartitions:
            _replace(scope, changer, repartitions)


def _by_key_change(nodes: list[GraphNode]) -> dict[GraphNode, list[RepartitionGraphNode]]:
    """Which repartitions are there because of which key change, in the order in which they were written."""
    ordered = sorted(nodes, key=lambda node: node.priority)
    groups: dict[GraphNode, list[RepartitionGraphNode]] = {node: [] for node in ordered if node.changes_key}
    for node in ordered:
        if isinstance(node, RepartitionGraphNode) and node.can_be_merged:
            changer = _key_changer(node)
            if changer is not None:
                groups[changer].append(node)
    for merge in (node for node in ordered if node.merges_streams):
        merged = [
            changer
            for changer, repartitions in groups.items()
            if all(_child_towards(node, merge) for node in repartitions) and _child_towards(merge, changer)
        ]
        groups[merge] = [node for changer in merged for node in groups[changer]]
        for changer in merged:
            del groups[changer]
    return groups


def _key_changer(repartition: GraphNode) -> GraphNode | None:
    """The key change that makes it necessary; None if values were changed since: a merged topic would hold the old ones."""
    changer = _upstream(repartition, lambda node: node.changes_key or node.changes_value)
    return changer if changer is not None and changer.changes_key else None


def _replace(scope: BuilderScope, changer: GraphNode, repartitions: list[RepartitionGraphNode]) -> None:
    """One repartition right behind the key change, in place of all that come later."""
    first = repartitions[0]
    merged = repartition_node(
        scope,
        first.topic,
        _first(node.key_serde for node in repartitions),
        _first(node.value_serde for node in repartitions),
        named_by_user=True,
    )
    merged.can_be_merged = False
    merged.priority = changer.priority  # written before what was written behind the key change
    for repartition in repartitions:
        child = _child_towards(repartition, changer)
        if child is not None:  # else it was moved with an earlier one: both are behind the same operator
            merged.add_child(child)
            changer.remove_child(child)
        for parent in list(repartition.parents):
            for below in repartition.children:
                parent.add_child(below)
            parent.remove_child(repartition)
        for below in list(repartition.children):
            repartition.remove_child(below)
        scope.graph.rename_source(repartition.name, merged.name)
    changer.add_child(merged)


def _child_towards(node: GraphNode, ancestor: GraphNode) -> GraphNode | None:
    """The child of `ancestor` through which `node` is reached; the node itself if it is one."""
    return _upstream(node, lambda found: ancestor in found.parents)


def _upstream(node: GraphNode, matches: Callable[[GraphNode], bool]) -> GraphNode | None:
    if matches(node):
        return node
    for parent in node.parents:
        found = _upstream(parent, matches)
        if found is not None:
            return found
    return None


def _first(values: Iterable[T | None]) -> T | None:
    return next((value for value in values if value is not None), None)
