"""From nodes to a topology of the Processor API: any graph, names that no Python name could be, children called by name."""

from __future__ import annotations

from tests.unit.streamfleet.compiler.random_topologies import IN, MORE, TABLE, TEXT, PapiNode
from tests.unit.streamfleet.compiler.random_user_code import Acting, ActingOnValues, Extracting, Functions

import streamfleet as sf

ODD_NAMES = ("p {}", "p'{}'", 'p"{}"', "p\n{}", "ü-{}", "class{}", "{}", "p#{}\\", "a-{}", "a_{}")
SHARED_STORE = "for-several"


def papi_topology(
    found: list[PapiNode], functions: Functions, config: sf.StreamsConfig, *, extractor: bool
) -> sf.Topology:
    topology = sf.Topology(config)
    topology.add_source("from in", IN, timestamp_extractor=Extracting(functions) if extractor else None)
    topology.add_source("from more", [MORE, TABLE])
    shared = sf.Stores.key_value(SHARED_STORE, key_serde=TEXT, value_serde=TEXT)
    callers = ["from in", "from more"]
    children: dict[str, list[str]] = {name: [] for name in callers}
    for number, node in enumerate(found):
        name = ODD_NAMES[number % len(ODD_NAMES)].format(number)
        parents = list(dict.fromkeys(callers[parent % len(callers)] for parent in node.parents))
        for parent in parents:
            children[parent].append(name)
        if node.kind in ("sink", "chosen", "partitions"):
            topic = functions.topic(node.n) if node.kind == "chosen" else f"out-{number}"
            partitioner = functions.partitions(node.n) if node.kind == "partitions" else None
            topology.add_sink(name, topic, *parents, partitioner=partitioner)
            continue
        children[name] = []
        callers.append(name)
        topology.add_processor(name, _supplier(functions, node, number, children[name]), *parents)
        if node.kind == "stored":
            topology.add_state_store(sf.Stores.key_value(f"store-{number}", key_serde=TEXT, value_serde=TEXT), name)
        if node.kind == "shared":
            topology.add_state_store(shared, name)
    return topology


def _supplier(functions, node, number, children):
    if node.kind == "fixed":
        return lambda: ActingOnValues(functions, node.n)
    store = {"stored": f"store-{number}", "shared": SHARED_STORE}.get(node.kind)
    # The list is complete when a processor is made; one name too many makes it ask for a child it has not.
    named = (lambda: (*children, "nobody") if node.n == 5 else tuple(children)) if node.by_name else tuple
    return lambda: Acting(functions, node.n, named(), store)
