"""Orders to a worker: over the real door, with a pretended app, from the client that the command line uses."""

import http.client
import json
import threading

import pytest
from typer.testing import CliRunner

from streamfleet.cli import app as cli
from streamfleet.errors import ConfigError, StreamsError
from streamfleet.kafka_streams.states import ClientState
from streamfleet.worker.control_client import ControlError, WorkerDoor, read_token
from streamfleet.worker.controls import Controls
from streamfleet.worker.http_door import HttpDoor, Pages, url_of
from streamfleet.worker.http_server import Address
from streamfleet.worker.secrets import redactor


class Obeying:
    """What was ordered, in order."""

    def __init__(self, streams):
        self.streams, self.orders = streams, []
        self.drained = threading.Event()

    @property
    def state(self):
        return self.streams.state

    def pause(self):
        self.orders.append("pause")

    def resume(self):
        self.orders.append("resume")

    def probe(self):
        if self.state is not ClientState.RUNNING:
            raise StreamsError(f"the app is {self.state.value}")
        self.orders.append("probe")

    def set_restore_rate(self, bytes_per_second):
        if bytes_per_second < 0:
            raise ConfigError("a restore rate cannot be negative")
        self.orders.append(bytes_per_second)

    def drain(self):
        self.orders.append("drain")
        self.streams.state = ClientState.NOT_RUNNING
        self.drained.set()


@pytest.fixture
def obeying(streams):
    streams.state = ClientState.RUNNING
    return Obeying(streams)


@pytest.fixture
def door(app, obeying):
    doors = []

    def opened(**settings):
        pages = Pages(app, redactor(()))
        chosen = {"token": None, "is_local": True} | settings
        Controls(obeying, obeying.drain, **chosen).add_to(pages.routes)
        doors.append(HttpDoor(pages.routes, Address("127.0.0.1", 0)))
        return url_of(doors[-1].open())

    yield opened
    for each in doors:
        each.close()


def raw(url, path, body=b"{}", **headers):
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=5)
    try:
        connection.request("POST", path, body, {"Content-Type": "application/json", **headers})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def test_orders_reach_the_app(door, obeying):
    worker = WorkerDoor(door())
    for name in ("pause", "resume", "probe"):
        assert worker.order(name) == {"accepted": name, "state": "running"}
    worker.order("restore-rate", {"bytes_per_second": 5000})
    assert obeying.orders == ["pause", "resume", "probe", 5000]


def test_draining_is_begun_and_can_be_waited_for(door, obeying):
    worker = WorkerDoor(door())
    worker.order("drain")
    worker.wait_until_drained(10)
    assert obeying.drained.is_set()


def test_an_app_that_has_not_started_cannot_be_drained(door, obeying, streams):
    streams.state = ClientState.CREATED
    with pytest.raises(ControlError, match="409.*not started"):
        WorkerDoor(door()).order("drain")


def test_what_the_app_refuses_is_told(door, streams):
    streams.state = ClientState.ERROR
    with pytest.raises(ControlError, match="the app is error"):
        WorkerDoor(door()).order("probe")


@pytest.mark.parametrize("body", [b"[]", b'{"bytes_per_second": "many"}', b'{"bytes": 1}', b"{}", b"{"])
def test_a_body_that_does_not_fit_is_refused(door, obeying, body):
    assert raw(door(), "/control/restore-rate", body)[0] == 400
    assert not obeying.orders


def test_a_negative_rate_is_refused(door):
    assert raw(door(), "/control/restore-rate", b'{"bytes_per_second": -1}')[0] == 400


def test_orders_are_not_given_by_reading(door, obeying):
    connection = http.client.HTTPConnection(door().removeprefix("http://"), timeout=5)
    connection.request("GET", "/control/pause")
    assert connection.getresponse().status == 405
    connection.close()
    assert not obeying.orders


def test_pages_of_a_browser_give_no_orders(door, obeying):
    assert raw(door(), "/control/pause", Origin="http://evil.example")[0] == 403
    assert not obeying.orders


@pytest.mark.parametrize("header", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic s3cret"}])
def test_with_a_token_nobody_gives_orders_without_it(door, obeying, header):
    status, body = raw(door(token="s3cret"), "/control/pause", **header)
    assert status == 401 and "s3cret" not in json.dumps(body)
    assert not obeying.orders


def test_with_its_token_orders_are_taken(door, obeying):
    WorkerDoor(door(token="s3cret", is_local=False), "s3cret").order("pause")
    assert obeying.orders == ["pause"]


def test_a_worker_that_listens_to_others_without_a_token_takes_no_orders(door, obeying):
    status, body = raw(door(is_local=False), "/control/pause")
    assert status == 403 and "--control-token-file" in body["error"]
    assert not obeying.orders


@pytest.mark.parametrize("url", ["127.0.0.1", "https://host:1", "http://host:port", "http://host:1/status", ""])
def test_what_is_no_address_of_a_worker_is_said(url):
    with pytest.raises(ConfigError, match="http://host:port"):
        WorkerDoor(url)


def test_a_worker_that_does_not_answer_is_named():
    with pytest.raises(ControlError, match="no worker answers at 127.0.0.1:1"):
        WorkerDoor("http://127.0.0.1:1").order("pause")


def test_a_token_is_one_word_in_a_file(tmp_path):
    file = tmp_path / "token"
    assert read_token(None) is None
    with pytest.raises(ConfigError, match="cannot be read"):
        read_token(file)
    for text in ("", "two words"):
        file.write_text(text)
        with pytest.raises(ConfigError, match="no token"):
            read_token(file)
    file.write_text("s3cret\n")
    assert read_token(file) == "s3cret"


def run(*arguments):
    return CliRunner().invoke(cli, ["worker", *arguments])


def test_the_command_line_gives_orders(door, obeying, tmp_path):
    (tmp_path / "token").write_text("s3cret")
    url, token = door(token="s3cret"), ["--token-file", str(tmp_path / "token")]
    assert "accepted: pause (the app is running)\n" in run("pause", url, *token).stdout
    assert run("restore-rate", url, "1000000", *token).exit_code == 0
    assert "drained: " in run("drain", url, *token).stdout
    assert obeying.orders == ["pause", 1000000, "drain"]
    refused = run("resume", url)
    assert refused.exit_code == 1 and "send the token" in refused.stderr
    assert run("probe", "nowhere").exit_code == 2


@pytest.mark.parametrize("name", ["probe", "drain", "pause", "resume", "restore-rate"])
def test_help_teaches_the_form_of_the_address(name):
    result = run(name, "--help")
    assert result.exit_code == 0 and "http://127.0.0.1:8080" in result.stdout
