"""The loop, over a simulated world: what fails again and again is told."""

import pytest
from starlette.testclient import TestClient
from tests.unit.streamfleet_platform.simulated_world import Lab

from streamfleet_platform.api.app import create_app
from streamfleet_platform.api.token_file import TokenFile
from streamfleet_platform.errors import TransientError
from streamfleet_platform.server.loop import STUCK_AFTER


@pytest.fixture
def lab(tmp_path):
    lab = Lab(tmp_path)
    lab.deployed()
    yield lab
    lab.server.close()


@pytest.fixture
def http(lab):
    tokens = TokenFile(lab.settings.token_file)
    headers = {"Authorization": f"Bearer {tokens.create('test', 'viewer', teams='all')}"}
    with TestClient(create_app(lab.fleet, tokens), base_url="http://127.0.0.1", headers=headers) as client:
        yield client


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ZeroDivisionError("a defect"), "ZeroDivisionError: a defect"),
        (TransientError("the registry does not answer"), "the registry does not answer"),
    ],
)
def test_passes_that_fail_one_after_the_other_are_told_until_one_succeeds(lab, http, error, words):
    observe = lab.observer.observe

    def failing(_apps):
        raise error

    lab.observer.observe = failing
    for _ in range(STUCK_AFTER - 1):
        lab.step()
    assert http.get("/readyz").status_code == 200, "one that fails is nothing yet"
    lab.step()
    assert http.get("/readyz").status_code == 503 and http.get("/healthz").status_code == 200
    fleet = http.get("/v1/fleet").json()
    assert not fleet["is_well"] and words in fleet["problems"][0] and "nothing is looked after" in fleet["problems"][0]
    lab.step()
    assert f"the last {STUCK_AFTER + 1} passes" in http.get("/v1/fleet").json()["problems"][0]
    lab.observer.observe = observe
    lab.step()
    fleet = http.get("/v1/fleet").json()
    assert fleet["is_well"] and fleet["problems"] == [] and http.get("/readyz").status_code == 200


def test_a_server_that_stands_by_is_ready_whatever_it_met_while_it_led(lab, http):
    def failing(_apps):
        raise ZeroDivisionError

    lab.observer.observe, leader = failing, lab.server
    for _ in range(STUCK_AFTER):
        lab.step()
    lab.clock.advance(60)
    second = lab.start(holder="second")
    leader.loop.step()
    assert not leader.loop.is_leader and http.get("/readyz").status_code == 200
    second.close()
    lab.server = leader
