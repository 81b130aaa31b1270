"""The topology as JSON: stable and sorted, so that two of them can be compared and a difference read in a pull request.

Nothing in it depends on the machine, the process or the cluster: topics the app creates are named without the application id,
and their settings are the library's and the store's own. Stores are in lock_stores.py.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from streamfleet.config import StreamsConfig
from streamfleet.serdes.identity import identity
from streamfleet.topology.internal_topics import changelog_settings, repartition_settings
from streamfleet.topology.lock_stores import global_store_entry, store_entry
from streamfleet.topology.nodes import Node, ProcessorNode, SinkNode, SourceNode
from streamfleet.topology.sub_topologies import SubTopology, extractor_name

if TYPE_CHECKING:
    from streamfleet.topology.topology import Topology

FORMAT = 2

_DEFAULTS = StreamsConfig(application_id="any")


def to_json(topology: Topology) -> str:
    return json.dumps(_topology(topology), indent=2, sort_keys=True) + "\n"


def _topology(topology: Topology) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "sub_topologies": [_sub_topology(part) for part in topology.sub_topologies()],
        "stores": {
            name: store_entry(builder, topology.source_changelogs.get(name))
            for name, builder in topology.stores.items()
        },
        "global_stores": {name: global_store_entry(entry) for name, entry in topology.global_stores.items()},
        "internal_topics": _internal_topics(topology),
        "copartitioned": sorted(sorted(group) for group in topology.copartitioned),
    }


def _sub_topology(part: SubTopology) -> dict[str, Any]:
    return {
        "id": part.id,
        "content_id": part.content_id,
        "global_store": part.global_store,
        "stores": sorted(part.stores),
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


def _serdes(node: SourceNode | SinkNode) -> dict[str, Any]:
    """A serde that is not there is the configured default."""
    chosen = {"key_serde": node.key_serde, "value_serde": node.value_serde}
    return {name: identity(serde) for name, serde in chosen.items() if serde is not None}


def _internal_topics(topology: Topology) -> dict[str, Any]:
    """By their names without the application id. `partitions` is the rule by which their number is found (plan.py)."""
    found: dict[str, Any] = {}
    for name, asked in topology.repartition_topics.items():
        partitions = {"rule": "widest_upstream"} if asked is None else {"rule": "asked", "count": asked}
        found[name] = {"kind": "repartition", "configs": repartition_settings(_DEFAULTS), "partitions": partitions}
    for name, builder in topology.stores.items():
        if builder.logging_enabled and name not in topology.source_changelogs:
            settings = changelog_settings(builder, _DEFAULTS)
            found[f"{name}-changelog"] = {"kind": "changelog", "configs": settings, "partitions": {"rule": "tasks"}}
    return found
