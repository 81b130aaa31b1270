"""What a bootstrap's driver makes of its child's lines, and of a server that is away. The whole job is in the integration set."""

import pytest

from dagster_streamfleet.bootstraps import PATIENCE_SECONDS, reported, state_in
from streamfleet_platform import TransientError


@pytest.mark.parametrize(
    "line",
    [
        "",
        "\n",
        "Picked up JAVA_TOOL_OPTIONS: -Xmx1g\n",
        "{not json\n",
        "7\n",
        "null\n",
        '["state"]\n',
        '{"level": "info"}\n',
    ],
)
def test_a_line_that_is_no_state_is_none(line):
    assert state_in(line) is None


def test_a_state_is_what_the_job_wrote():
    assert state_in('{"state": "computed", "detail": {"records": 7}}\n') == {
        "state": "computed",
        "detail": {"records": 7},
    }


class Clock:
    """Each pause lasts as long as it says; `until` is when the server is back."""

    def __init__(self, server, until):
        self.now, self._server, self._until = 0.0, server, until

    def pause(self, seconds):
        self.now += seconds
        self._server.wire.away = self.now < self._until


def report(server, away_seconds):
    with server.client() as client:
        run = client.start_bootstrap("orders", "lake")
        server.wire.away = away_seconds > 0
        clock = Clock(server, away_seconds)
        found = reported(client, run, {"state": "computed"}, now=lambda: clock.now, pause=clock.pause)
    return found, clock.now


def test_a_server_that_is_away_is_told_when_it_is_back(server):
    found, waited = report(server, PATIENCE_SECONDS - 5)
    assert found.state == "computed"
    assert waited == PATIENCE_SECONDS - 5
    assert [path for path, _ in server.wire.posts][-1] == f"/v1/apps/orders/bootstraps/{found.id}"


def test_a_server_that_stays_away_ends_the_wait(server):
    with pytest.raises(TransientError, match="does not answer"):
        report(server, 10 * PATIENCE_SECONDS)
