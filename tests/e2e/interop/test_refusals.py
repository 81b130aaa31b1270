"""What cannot work is refused, with a reason that says what to do; who runs the app goes on undisturbed."""

import pytest
from tests.interop.app import App
from tests.interop.inputs import phases
from tests.interop.oracle import expected_results
from tests.interop.side import SideError

TOPOLOGY = "windows"


@pytest.fixture
def app(broker, tmp_path):
    return App(broker.bootstrap_servers, tmp_path, TOPOLOGY)


@pytest.mark.parametrize(
    "member", [{}, {"group.instance.id": "first"}, {"group.protocol": "streams"}], ids=["dynamic", "static", "streams"]
)
def test_an_app_that_java_runs_is_not_joined_and_taken_over_as_soon_as_it_left(sides, app, base_ms, member):
    java, ours = sides["java"], sides["ours"]
    first, second, third = phases(TOPOLOGY, base_ms)
    app.write(first)
    java.start(app.topology, app.name, app.settings() | member)
    with pytest.raises(SideError, match="is in use by another kind of client.*CloseOptions.*session time-out"):
        app.start(ours)
    app.wait_until_caught_up()
    java.close()
    app.run(ours, second)
    app.run(java, third)
    assert app.results() == expected_results(TOPOLOGY, [first, second, third])


def test_an_app_that_we_run_is_not_joined_by_java(sides, app, base_ms):
    java, ours = sides["java"], sides["ours"]
    given = phases(TOPOLOGY, base_ms)
    app.write(given[0])
    app.start(ours)
    with pytest.raises(SideError, match="InconsistentGroupProtocolException"):
        app.start(java)
    app.write(given[1])
    app.wait_until_caught_up()
    ours.close()
    app.run(java, given[2])
    assert app.results() == expected_results(TOPOLOGY, given)
