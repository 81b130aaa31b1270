"""One side is killed in the middle of its work, and the other one goes on."""

import pytest
from tests.interop.app import App
from tests.interop.inputs import phases
from tests.interop.oracle import expected_results
from tests.interop.side import Side

SIDES = {"java": Side.java, "ours": Side.ours}
HELD_MS = 5000
"""Between the commits of the side that is killed: long enough to be killed in between, shorter than its transactions may last."""


@pytest.fixture(params=["java", "ours"])
def victim(request, tmp_path):
    side = SIDES[request.param](tmp_path)
    yield side
    side.kill()


@pytest.fixture
def heir(victim, sides):
    return sides["ours" if victim.name == "java" else "java"]


def crash(app, victim, records):
    """Kill a side after it wrote results that it did not commit."""
    app.write(records)
    before = app.ends()
    victim.start(app.topology, app.name, app.settings() | {"commit.interval.ms": HELD_MS})
    app.wait_for_growth_of_outputs(before)
    victim.kill()
    app.wait_until_nobody_runs_it()


@pytest.mark.parametrize("topology", ["windows", "sessions", "join"])
def test_what_a_killed_side_had_not_committed_is_done_again_exactly_once(
    victim, heir, sides, broker, tmp_path, base_ms, topology
):
    app = App(broker.bootstrap_servers, tmp_path, topology)
    given = phases(topology, base_ms)
    app.run(sides[victim.name], given[0])
    crash(app, victim, given[1])
    app.run(heir, given[2])
    assert app.results() == expected_results(topology, given)


def test_without_transactions_every_row_ends_as_if_nobody_had_been_killed(
    victim, heir, sides, broker, tmp_path, base_ms
):
    """What is processed again may meet rows of later, but the last word on a row is the same."""
    app = App(broker.bootstrap_servers, tmp_path, "join", "at_least_once")
    given = phases("join", base_ms)
    app.run(sides[victim.name], given[0])
    crash(app, victim, given[1])
    app.run(heir, given[2])
    expected = expected_results("join", given)["out"]
    for results, full in zip(app.results()["out"], expected, strict=True):
        assert {r.key: r for r in results} == {r.key: r for r in full}
