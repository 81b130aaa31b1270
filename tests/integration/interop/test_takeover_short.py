"""An application id goes from Java Kafka Streams to this engine and back. Longer forms are in tests/e2e/interop."""

import pytest
from tests.interop.app import App
from tests.interop.inputs import phases, recent
from tests.interop.oracle import expected_results, expected_rows
from tests.interop.topologies import NAMES

JAVA_FIRST, OURS_FIRST = ("java", "ours", "java"), ("ours", "java", "ours")


@pytest.mark.parametrize("topology", NAMES)
def test_both_sides_describe_a_topology_alike(sides, topology):
    assert sides["ours"].describe(topology, "some") == sides["java"].describe(topology, "some")


@pytest.mark.parametrize(
    ("topology", "relay", "guarantee"),
    [
        ("sessions", JAVA_FIRST, "exactly_once_v2"),
        ("join", JAVA_FIRST, "exactly_once_v2"),
        ("windows", JAVA_FIRST, "exactly_once_v2"),
        ("windows", OURS_FIRST, "at_least_once"),
    ],
)
def test_results_go_on_as_if_the_app_had_never_changed_hands(sides, broker, tmp_path, topology, relay, guarantee):
    app = App(broker.bootstrap_servers, tmp_path, topology, guarantee)
    given = phases(topology, recent())
    for side, records in zip(relay, given, strict=True):
        app.run(sides[side], records)
    assert app.results() == expected_results(topology, given)


def test_rows_joined_by_a_foreign_key_go_on_as_if_the_app_had_never_changed_hands(sides, broker, tmp_path):
    app = App(broker.bootstrap_servers, tmp_path, "foreign")
    given = phases("foreign", recent())
    for number, (side, records) in enumerate(zip(("java", "ours", "java"), given, strict=True), start=1):
        app.run(sides[side], records)
        assert app.rows() == expected_rows("foreign", given[:number])
