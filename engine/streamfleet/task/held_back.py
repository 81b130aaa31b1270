"""Which stores of a task may be behind the records it has processed: those that are fed through the cache of another store.

Used by StreamTask to say how fresh a store is. A cached store forwards when it is flushed, at the latest with the next commit;
until then a store further down does not have what was processed. The cached store itself does: its readers see its cache.
"""

from __future__ import annotations

from streamfleet.topology.nodes import ProcessorNode, ProcessorTopology


def stores_behind_caches(topology: ProcessorTopology) -> frozenset[str]:
    cached = {entry.name for entry in topology.stores if entry.builder.caching_enabled}
    if not cached:
        return frozenset()
    stores = {node.name: set(node.stores) for node in topology.nodes if isinstance(node, ProcessorNode)}
    behind: set[str] = set()
    for name in cached:
        holders = [node for node, connected in stores.items() if name in connected]
        below = _descendants(topology, holders)
        behind |= {store for node in below for store in stores.get(node, ())} - {name}
    return frozenset(behind)


def _descendants(topology: ProcessorTopology, nodes: list[str]) -> set[str]:
    found: set[str] = set()
    waiting = [child for node in nodes for child in topology.children.get(node, ())]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += topology.children.get(node, ())
    return found
