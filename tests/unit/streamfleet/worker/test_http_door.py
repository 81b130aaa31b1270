import http.client
import json
import socket

import pytest

from streamfleet.errors import ConfigError, StreamsError
from streamfleet.kafka_streams.states import ClientState
from streamfleet.worker.http_door import HttpDoor, Pages, parse_address, url_of
from streamfleet.worker.http_server import Address
from streamfleet.worker.secrets import redactor


@pytest.fixture
def ask(app):
    door = HttpDoor(Pages(app, redactor({"hunter2"})).routes, Address("127.0.0.1", 0))
    host = url_of(door.open()).removeprefix("http://")

    def request(path, method="GET", **headers):
        connection = http.client.HTTPConnection(host, timeout=5)
        try:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    yield request
    door.close()


def test_readiness_is_503_until_running(ask, streams):
    assert ask("/readyz")[0] == 503
    streams.state = ClientState.RUNNING
    assert ask("/readyz")[0] == 200


def test_liveness_status_and_metrics_are_there_from_the_start(ask):
    assert ask("/livez")[0] == 200
    assert json.loads(ask("/status")[1])["state"] == "created"
    assert b'streamfleet_state{state="created"} 1.0' in ask("/metrics")[1]


def test_an_unknown_page_names_those_there_are(ask):
    status, body = ask("/")
    assert status == 404
    assert json.loads(body)["pages"] == ["/livez", "/metrics", "/readyz", "/status"]


def test_a_query_is_ignored(ask):
    assert ask("/livez?verbose=1")[0] == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:80", 200),
        ("localhost", 200),
        ("LOCALHOST:8080", 200),
        ("[::1]:80", 200),
        ("evil.example", 421),
        ("localhost.evil.example:80", 421),
        ("", 421),
    ],
)
def test_a_door_on_loopback_is_not_read_under_the_name_of_a_web_page(ask, host, status):
    assert ask("/livez", Host=host)[0] == status
    assert ask("/livez", Host=host)[0] == status


def test_head_has_no_body(ask):
    assert ask("/status", "HEAD") == (200, b"")


@pytest.mark.parametrize(("method", "status"), [("POST", 405), ("PUT", 501), ("DELETE", 501)])
def test_pages_can_only_be_read(ask, method, status):
    assert ask("/status", method)[0] == status


def test_secrets_are_masked_in_what_errors_say(ask, streams):
    streams.failure = StreamsError("cannot log in with hunter2")
    assert b"cannot log in with ***" in ask("/status")[1]


def test_a_page_that_fails_is_a_500_and_the_door_stays_open(ask, streams):
    streams.threads = None
    assert ask("/status")[0] == 500
    assert ask("/livez")[0] == 200


@pytest.mark.parametrize(
    ("text", "address"),
    [("127.0.0.1:8080", ("127.0.0.1", 8080)), (":0", ("", 0)), ("[::1]:80", ("::1", 80)), ("worker:1", ("worker", 1))],
)
def test_addresses(text, address):
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["8080", "localhost", "localhost:", "localhost:http", "localhost:70000"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ConfigError, match="write host:port"):
        parse_address(text)


def test_a_port_in_use_is_said(app):
    with socket.create_server(("127.0.0.1", 0)) as other:
        door = HttpDoor(Pages(app, redactor(())).routes, Address("127.0.0.1", other.getsockname()[1]))
        with pytest.raises(ConfigError, match="cannot listen on 127.0.0.1"):
            door.open()
