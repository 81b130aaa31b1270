"""The topology as JSON: stable and sorted, so that two of them can be compared and a difference read in a pull request."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from streamfleet.topology.nodes import Node, ProcessorNode, SinkNode, SourceNode
from streamfleet.topology.sub_topologies import SubTopology, extractor_name

if TYPE_CHECKING:
    from streamfleet.topology.topology import Topology

FORMAT = 1


def to_json(topology: Topology) -> str:
    return json.dumps(_topology(topology), indent=2, sort_keys=True) + "\n"


def _topology(topology: Topology) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "sub_topologies": [_sub_topology(part) for part in topology.sub_topologies()],
        "stores": {name: _store(topology, name) for name in topology.stores},
        "global_stores": {name: {"topic": entry.source.topics[0]} for name, entry in topology.global_stores.items()},
        "repartition_topics": {name: {"partitions": asked} for name, asked in topology.repartition_topics.items()},
        "copartitioned": sorted(sorted(group) for group in topology.copartitioned),
    }


def _sub_topology(part: SubTopology) -> dict[str, Any]:
    return {
        "id": part.id,
        "content_id": part.content_id,
        "global_store": part.global_store,
        "nodes": [_node(node) for node in part.nodes],
    }


def _node(node: Node) -> dict[str, Any]:
    if isinstance(node, SourceNode):
        what: dict[str, Any] = {"kind": "source", "topics": sorted(node.topics)}
        if node.pattern is not None:
            what["pattern"] = node.pattern.pattern
        return what | {"name": node.name} | _serdes(node)
    if isinstance(node, ProcessorNode):
        return {"kind": "processor", "name": node.name, "parents": list(node.parents), "stores": sorted(node.stores)}
    return _sink(node)


def _sink(node: SinkNode) -> dict[str, Any]:
    target = {"topic": node.topic} if isinstance(node.topic, str) else {"topic_by": extractor_name(node.topic)}
    return {"kind": "sink", "name": node.name, "parents": list(node.parents)} | target | _serdes(node)


def _serdes(node: SourceNode | SinkNode) -> dict[str, str]:
    chosen = {"key_serde": node.key_serde, "value_serde": node.value_serde}
    return {name: repr(serde) for name, serde in chosen.items() if serde is not None}


def _store(topology: Topology, name: str) -> dict[str, Any]:
    builder = topology.stores[name]
    return {
        "windowed": builder.is_windowed,
        "retention_ms": builder.retention_ms,
        "logged": builder.logging_enabled,
        "log_config": dict(builder.log_config),
        "source_topic": topology.source_changelogs.get(name),
    }
