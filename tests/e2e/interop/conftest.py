"""Both engines, each in a process that all tests of the directory share, and what Java alone makes of the same input."""

import pytest
from tests.interop.app import App
from tests.interop.inputs import phases, recent
from tests.interop.side import both_sides

JAVA_FIRST, OURS_FIRST = ("java", "ours", "java"), ("ours", "java", "ours")


@pytest.fixture(scope="session")
def sides(tmp_path_factory):
    with both_sides(tmp_path_factory.mktemp("sides")) as sides:
        yield sides


@pytest.fixture(params=[JAVA_FIRST, OURS_FIRST], ids=["-".join(JAVA_FIRST), "-".join(OURS_FIRST)])
def relay(request, sides):
    """Who runs the three phases."""
    return [sides[name] for name in request.param]


@pytest.fixture(scope="session")
def base_ms():
    """All runs are given the same times, so that they can be compared."""
    return recent()


@pytest.fixture(scope="session")
def java_alone(sides, broker, base_ms, tmp_path_factory):
    """An app that Java ran all the time, stopped and without its local state in the same places; run once for each topology."""
    ran = {}

    def run(topology, *, late_first=False):
        if (topology, late_first) not in ran:
            app = App(broker.bootstrap_servers, tmp_path_factory.mktemp("reference"), topology)
            for records in phases(topology, base_ms, late_first=late_first):
                app.run(sides["java"], records)
            ran[topology, late_first] = app
        return ran[topology, late_first]

    return run
