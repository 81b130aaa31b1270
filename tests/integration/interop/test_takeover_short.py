"""An application id goes from Java Kafka Streams to this engine and back. Longer forms are in tests/e2e/interop."""

import pytest
from tests.interop.app import App
from tests.interop.inputs import phases, recent
from tests.interop.oracle import expected_results, expected_rows
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


def test_rows_joined_by_a_foreign_key_go_on_as_if_the_app_had_never_changed_hands(sides, broker, tmp_path):
    app = App(broker.bootstrap_servers, tmp_path, "foreign")
    given = phases("foreign", recent())
    for number, (side, records) in enumerate(zip(("java", "ours", "java"), given, strict=True), start=1):
        app.run(sides[side], records)
        assert app.rows() == expected_rows("foreign", given[:number])
