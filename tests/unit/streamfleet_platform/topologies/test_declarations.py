import re
from pathlib import Path

import streamfleet as sf
from streamfleet_platform.definitions.loader import load_fleet
from streamfleet_platform.definitions.tree import DirectoryTree
from streamfleet_platform.topologies.declarations import declaration_problems
from streamfleet_platform.topologies.lock import TopologyLock

EXAMPLES = Path(__file__).parent / "fleet"


def problems(topology):
    fleet = load_fleet(DirectoryTree(EXAMPLES))
    lock = TopologyLock.from_topology_json(topology.to_json())
    return [str(problem) for problem in declaration_problems(fleet.apps["orders"], fleet.apps, lock)]


def test_the_example_declares_what_it_does():
    fleet = load_fleet(DirectoryTree(EXAMPLES))
    lock = TopologyLock.from_file((EXAMPLES / "apps/orders.lock.json").read_bytes())
    assert declaration_problems(fleet.apps["orders"], fleet.apps, lock) == []


def test_topics_that_only_one_side_knows_are_told():
    builder = sf.StreamsBuilder()
    builder.stream(["orders", "custmers"]).to("enriched-orders")
    assert problems(builder.build()) == [
        "apps/orders.yaml:10:5: topic custmers is read by the code, but not among inputs; did you mean customers?",
        "apps/orders.yaml:11:16: inputs.customers: topic customers is not read by the code; remove it, or use it",
        "apps/orders.yaml:14:14: outputs.revenue: topic revenue-per-country is not written by the code; remove it, or use it",
    ]


def test_a_pattern_and_a_function_may_stand_for_any_topic():
    topology = sf.Topology()
    topology.add_source("in", re.compile("orders|customers")).add_sink("out", lambda key, value, context: "x", "in")
    assert problems(topology) == []
