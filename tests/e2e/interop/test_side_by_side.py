"""In a streams group the broker plans (KIP-1071), so that both engines may run an app together: a takeover without a stop."""

import pytest
from tests.interop.app import App, newest_values
from tests.interop.inputs import phases
from tests.interop.oracle import expected_results


def run_in_turns_and_together(app, first, second, given):
    """The second side joins the first one, both run, the first one leaves."""
    app.write(given[0])
    app.start(first)
    app.wait_until_caught_up()
    app.start(second)
    app.wait_until_shared(members=2)
    app.write(given[1])
    app.wait_until_caught_up()
    first.close()
    app.wait_until_shared(members=1)
    app.write(given[2])
    app.wait_until_caught_up()
    second.close()


@pytest.mark.parametrize("topology", ["windows", "sessions", "final"])
def test_results_go_on_while_one_side_joins_and_the_other_leaves(relay, broker, tmp_path, base_ms, topology):
    app = App(broker.bootstrap_servers, tmp_path, topology, group_protocol="streams")
    given = phases(topology, base_ms)
    run_in_turns_and_together(app, relay[0], relay[1], given)
    assert app.results() == expected_results(topology, given)


@pytest.mark.parametrize("topology", ["join", "generated"])
def test_tables_are_joined_while_one_side_joins_and_the_other_leaves(relay, broker, tmp_path, base_ms, topology):
    """Which of two topics is read first is open, now that they are written to while the app runs; how every row ends is not."""
    app = App(broker.bootstrap_servers, tmp_path, topology, group_protocol="streams")
    given = phases(topology, base_ms)
    run_in_turns_and_together(app, relay[0], relay[1], given)
    expected = expected_results(topology, given)["out"]
    assert [newest_values(results) for results in app.results()["out"]] == [newest_values(full) for full in expected]
