"""The query gateway, against doors that are as a worker's, or as somebody's who took a worker's port."""

import json
import threading

import httpx
import pytest
from tests.unit.streamfleet_platform.api.fake_fleet import FakeFleet

from streamfleet_platform.api.gateway import MAX_ANSWER_BYTES, MAX_AT_ONCE, QueryGateway
from streamfleet_platform.errors import (
    ConflictError,
    FleetError,
    InvalidRequestError,
    NotFoundError,
    SlowDownError,
    TransientError,
)
from streamfleet_platform.service import Door

OWN = {"Streamfleet-Application": "orders-app"}
FOUND = {"store": "counts", "partition": 1, "active": True, "position": {}, "key": "k", "value": 3}
AWAY = {"error": "nobody has it now", "code": "not_present"}
STANDBY = {**FOUND, "active": False, "lag_records": 5, "age_ms": 1200}


class Doors:
    """Answers by port; what is asked of whom is kept."""

    def __init__(self, **answers):
        self.answers = {int(port.removeprefix("p")): answer for port, answer in answers.items()}
        self.asked = []

    def __call__(self, request):
        self.asked.append(request)
        answer = self.answers[request.url.port]
        return answer(request)


def answer(status, content, headers=OWN):
    return raw(status, headers, json.dumps(content).encode())


def raw(status, headers, content):
    """Made anew for every request, as on a wire."""
    return lambda _: httpx.Response(status, headers=headers, stream=httpx.ByteStream(content))


def loopback(host, port):
    return [(2, 1, 6, "", ("127.0.0.1" if host == "worker" else host, port))]


@pytest.fixture
def asked():
    fleet = FakeFleet()

    def ask(doors, key="k", store="counts", urls=None, resolve=loopback, **options):
        ports = urls or [f"http://127.0.0.1:{port}" for port in doors.answers]
        fleet.doors_of["orders"] = [Door(slot, url, "worker-token") for slot, url in enumerate(ports)]
        gateway = QueryGateway(fleet, transport=httpx.MockTransport(doors), resolve=resolve)
        try:
            return gateway.ask("orders", store, key, options)
        finally:
            gateway.close()

    return ask


def test_any_worker_is_asked_and_its_answer_is_given(asked):
    doors = Doors(p8001=answer(200, FOUND))
    assert asked(doors) == {**FOUND, "stale": False}
    (request,) = doors.asked
    assert request.url.raw_path == b"/query/counts/key/k"


def test_neither_the_callers_token_nor_the_workers_goes_along(asked):
    doors = Doors(p8001=answer(200, FOUND))
    asked(doors)
    assert "authorization" not in doors.asked[0].headers
    assert "cookie" not in doors.asked[0].headers
    assert doors.asked[0].headers["streamfleet-application"] == "orders-app"


def test_the_next_worker_is_asked_when_one_is_gone(asked):
    def gone(request):
        raise httpx.ConnectError("refused")

    assert asked(Doors(p8001=gone, p8002=answer(200, FOUND)))["value"] == 3


def test_without_an_owner_a_standby_answers_and_says_how_stale(asked):
    def second(request):
        return (answer(200, STANDBY) if b"stale=true" in request.url.query else answer(503, AWAY))(request)

    doors = Doors(p8001=answer(503, AWAY), p8002=second)
    found = asked(doors)
    assert (found["stale"], found["lag_records"], found["age_ms"]) == (True, 5, 1200)
    assert b"forward=false" in doors.asked[-1].url.query


def test_who_wants_the_owner_only_gets_no_standby(asked):
    doors = Doors(p8001=answer(503, AWAY))
    with pytest.raises(TransientError, match="nobody has it now"):
        asked(doors, stale="false")
    assert len(doors.asked) == 1


def test_without_any_worker_it_may_work_later(asked):
    with pytest.raises(TransientError, match="app orders is running, and has no worker that can be asked"):
        asked(Doors())


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (404, NotFoundError),
        (400, InvalidRequestError),
        (409, ConflictError),
        (413, InvalidRequestError),
        (429, SlowDownError),
    ],
)
def test_what_a_worker_refuses_is_refused(asked, status, kind):
    with pytest.raises(kind, match="a sentence"):
        asked(Doors(p8001=answer(status, {"error": "a sentence", "code": "x"})))


def test_window_stores_have_their_own_page_and_others_none(asked):
    doors = Doors(p8001=answer(200, {"rows": [], "active": True}))
    asked(doors, store="by-minute", **{"from": "60000"})
    assert doors.asked[0].url.raw_path == b"/query/by-minute/window/k?from=60000"
    with pytest.raises(ConflictError):
        asked(doors, store="held-back")
    with pytest.raises(NotFoundError, match="has no store nothing"):
        asked(doors, store="nothing")


@pytest.mark.parametrize("key", ["a/b", "../status", "?x=1", "#", "%2e%2e", "a b", "é", "\n", "&stale=true"])
def test_a_key_stays_one_segment_whatever_it_is(asked, key):
    doors = Doors(p8001=answer(200, FOUND))
    asked(doors, key=key)
    path = doors.asked[0].url.raw_path
    assert path.startswith(b"/query/counts/key/") and path.count(b"/") == 4 and b"?" not in path


def test_a_long_key_is_refused(asked):
    with pytest.raises(InvalidRequestError):
        asked(Doors(), key="k" * 5000)


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254:8080",
        "http://[::1]:22",
        "http://127.0.0.1:80",
        "http://user@127.0.0.1:8001",
        "http://127.0.0.1:8001/admin",
        "http://127.0.0.1:8001?x",
        "http://x#@127.0.0.1:8001",
        "https://127.0.0.1:8001",
        "file:///etc/passwd",
        "http://224.0.0.1:8001",
        "http://0.0.0.0:8001",
        "http://[::ffff:169.254.169.254]:8001",
        "nonsense",
        "http://127.0.0.1:99999",
    ],
)
def test_an_address_that_is_no_workers_is_not_called(asked, url):
    doors = Doors()
    with pytest.raises(TransientError):
        asked(doors, urls=[url])
    assert doors.asked == []


def test_a_name_is_resolved_once_and_that_address_called(asked):
    resolved = []

    def changing(host, port):
        resolved.append(host)
        return [(2, 1, 6, "", ("127.0.0.1" if len(resolved) == 1 else "169.254.169.254", port))]

    doors = Doors(p8001=answer(200, FOUND))
    asked(doors, urls=["http://worker.local:8001"], resolve=changing)
    assert resolved == ["worker.local"]
    assert doors.asked[0].url.host == "127.0.0.1"
    assert doors.asked[0].headers["host"] == "worker.local:8001"


@pytest.mark.parametrize(
    "hostile",
    [
        answer(302, {}, {**OWN, "Location": "http://169.254.169.254/"}),
        answer(200, FOUND, {"Streamfleet-Application": "another-app"}),
        answer(200, FOUND, {}),
        raw(200, OWN, b"<html>"),
        raw(200, OWN, b"[1]"),
        raw(200, OWN, b"x" * (MAX_ANSWER_BYTES + 1)),
        raw(200, OWN, b"[" * 100_000),
    ],
)
def test_who_took_a_workers_port_is_not_believed(asked, hostile):
    doors = Doors(p8001=hostile)
    with pytest.raises(TransientError):
        asked(doors, stale="false")
    assert len(doors.asked) == 1


def test_too_many_at_once_are_told_to_wait():
    fleet = FakeFleet()
    entered, leave = threading.Semaphore(0), threading.Event()

    def slow(request):
        entered.release()
        leave.wait(10)
        return answer(200, FOUND)(request)

    fleet.doors_of["orders"] = [Door(0, "http://127.0.0.1:8001", None)]
    gateway = QueryGateway(fleet, transport=httpx.MockTransport(slow), resolve=loopback)
    threads = [threading.Thread(target=gateway.ask, args=("orders", "counts", "k", {})) for _ in range(MAX_AT_ONCE)]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert entered.acquire(timeout=10)
    with pytest.raises(SlowDownError):
        gateway.ask("orders", "counts", "k", {})
    leave.set()
    for thread in threads:
        thread.join()
    assert gateway.ask("orders", "counts", "k", {})["value"] == 3
    gateway.close()


class TestOverTheApi:
    @pytest.fixture
    def doors(self, app, fleet):
        doors = Doors(p8001=answer(200, FOUND))
        fleet.doors_of["orders"] = [Door(0, "http://127.0.0.1:8001", "worker-token")]
        app.state.gateway.close()
        app.state.gateway = QueryGateway(fleet, transport=httpx.MockTransport(doors))
        return doors

    def test_the_client_gets_what_the_worker_said(self, client, doors):
        assert client.query("orders", "counts", "a/b?c", isolation="read_committed")["value"] == 3
        assert doors.asked[0].url.raw_path == b"/query/counts/key/a%2Fb%3Fc?isolation=read_committed"

    def test_other_teams_do_not_read_its_records(self, http, doors):
        assert http("web-viewer").get("/v1/apps/orders/stores/counts/keys/k").status_code == 403
        assert http("operator").get("/v1/apps/orders/stores/counts/keys/k").status_code == 200
        assert len(doors.asked) == 1

    @pytest.mark.parametrize("options", ["forward=true", "limit=5000", "stale=maybe", "partitions=1,2", "url=http://x"])
    def test_options_are_known_ones(self, http, doors, options):
        assert http().get(f"/v1/apps/orders/stores/counts/keys/k?{options}").status_code == 422
        assert doors.asked == []

    def test_errors_arrive_as_what_they_are(self, client, doors):
        doors.answers[8001] = answer(
            404, {"error": "the store has no such key", "code": "key_not_found", "active": True}
        )
        with pytest.raises(NotFoundError, match="the store has no such key"):
            client.query("orders", "counts", "nobody")
        with pytest.raises(FleetError):
            client.query("orders", "no store", "nobody")
