"""An application id goes from Java Kafka Streams to this engine and back. Longer forms are in tests/e2e/interop."""

import pytest
from tests.interop.app import App
from tests.interop.inputs import phases, recent
from tests.interop.oracle import expected_results
from tests.interop.topologies import NAMES


@pytest.mark.parametrize("topology", NAMES)
def test_both_sides_describe_a_topology_alike(sides, topology):
    assert sides["ours"].describe(topology, "some") == sides["java"].describe(topology, "some")


@pytest.mark.parametrize("topology", ["sessions", "join"])
def test_results_go_on_as_if_the_app_had_never_changed_hands(sides, broker, tmp_path, topology):
    app = App(broker.bootstrap_servers, tmp_path, topology)
    given = phases(topology, recent())
    for side, records in zip(("java", "ours", "java"), given, strict=True):
        app.run(sides[side], records)
    assert app.results() == expected_results(topology, given)
