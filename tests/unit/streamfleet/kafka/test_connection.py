"""A connection over a socket that is only a list of bytes: greeting, login, login again, and bytes that come in pieces."""

from __future__ import annotations

import base64
import struct
from typing import Any

import pytest
from kafka.protocol.consumer.group import HeartbeatResponse  # type: ignore[import-untyped]
from kafka.protocol.metadata.api_versions import ApiVersionsResponse  # type: ignore[import-untyped]
from kafka.protocol.sasl import SaslAuthenticateResponse, SaslHandshakeResponse  # type: ignore[import-untyped]
from tests.unit.streamfleet.kafka.scripted_coordinator import HandClock

from streamfleet.kafka.connection import TcpConnection
from streamfleet.kafka.connection_messages import API_KEYS
from streamfleet.kafka.error_codes import ErrorCode
from streamfleet.kafka.errors import AuthenticationError, UnsupportedBrokerError
from streamfleet.kafka.group_messages import ConsumerGroupMetadata, heartbeat
from streamfleet.kafka.security import SaslCredentials
from streamfleet.kafka.wire import PINNED

CALL = heartbeat(ConsumerGroupMetadata("group", 1, "me"))
LOGIN = SaslCredentials("PLAIN", "me", "secret")


class ByteSocket:
    """Answers each request as a broker would, in pieces of at most `piece` bytes."""

    def __init__(self, clock: HandClock) -> None:
        self.clock = clock
        self.piece = 1_000
        self.requests: list[str] = []
        self.versions = dict(PINNED)
        self.login_code = 0
        self.session_ms = 0
        self.mechanisms_code = 0
        self.mute = False
        self.closed = False
        self._incoming = b""
        self._timeout = 0.0

    def settimeout(self, seconds: float) -> None:
        self._timeout = seconds

    def sendall(self, sent: bytes) -> None:
        key, version, correlation_id = struct.unpack_from(">hhi", sent, 4)
        name = API_KEYS[key]
        self.requests.append(name)
        if self.mute:
            return
        response = self._response(name)
        flexible = type(response).flexible_version_q(version) and name != "ApiVersions"
        body = (
            struct.pack(">i", correlation_id) + (b"\0" if flexible else b"") + bytes(response.encode(version=version))
        )
        self._incoming += struct.pack(">i", len(body)) + body

    def recv(self, size: int) -> bytes:
        if self.closed:
            return b""
        if not self._incoming:
            self.clock.pause_ms(int(self._timeout * 1000))
            raise TimeoutError
        size = min(size, self.piece)
        got, self._incoming = self._incoming[:size], self._incoming[size:]
        return got

    def _response(self, name: str) -> Any:
        if name == "ApiVersions":
            keys = {API_KEYS[key]: key for key in API_KEYS}
            entry = ApiVersionsResponse.ApiVersion
            rows = [
                entry(api_key=keys[each], min_version=0, max_version=newest, version=3)
                for each, newest in self.versions.items()
            ]
            return ApiVersionsResponse(error_code=0, api_keys=rows, throttle_time_ms=0, version=3)
        if name == "SaslHandshake":
            return SaslHandshakeResponse(error_code=self.mechanisms_code, mechanisms=["SCRAM-SHA-512"], version=1)
        if name == "SaslAuthenticate":
            return SaslAuthenticateResponse(
                error_code=self.login_code,
                error_message="no such user" if self.login_code else None,
                auth_bytes=b"",
                session_lifetime_ms=self.session_ms,
                version=2,
            )
        return HeartbeatResponse(throttle_time_ms=0, error_code=27, version=4)


@pytest.fixture
def socket():
    return ByteSocket(HandClock())


@pytest.fixture
def connection(socket):
    return TcpConnection(socket, "client", socket.clock, setup_timeout_ms=1_000)


def test_a_greeting_checks_versions_before_anything_else(socket, connection):
    connection.greet(LOGIN)
    assert socket.requests == ["ApiVersions", "SaslHandshake", "SaslAuthenticate"]


def test_a_broker_that_is_too_old_is_refused_by_name(socket, connection):
    socket.versions["OffsetFetch"] = 8
    with pytest.raises(UnsupportedBrokerError, match="OffsetFetch 9 .the broker has 0 to 8.*4.0 or newer"):
        connection.greet(LOGIN)
    assert socket.requests == ["ApiVersions"]


def test_a_refused_login_tells_the_brokers_words(socket, connection):
    socket.login_code = 58
    with pytest.raises(AuthenticationError, match="refused the login of me: no such user") as raised:
        connection.greet(LOGIN)
    assert "secret" not in str(raised.value)


def test_a_mechanism_that_is_off_tells_those_that_are_on(socket, connection):
    socket.mechanisms_code = 33
    with pytest.raises(AuthenticationError, match="does not accept PLAIN.*SCRAM-SHA-512"):
        connection.greet(LOGIN)


@pytest.mark.parametrize("piece", [1, 3, 1_000])
def test_an_answer_may_come_in_pieces(socket, connection, piece):
    socket.piece = piece
    connection.greet(None)
    connection.send(CALL)
    assert connection.receive(100).code is ErrorCode.REBALANCE_IN_PROGRESS


def test_an_answer_that_is_not_there_yet_is_waited_for_no_longer_than_told(socket, connection):
    connection.greet(None)
    socket.mute = True
    connection.send(CALL)
    began = socket.clock.now_ms()
    assert connection.receive(30) is None
    assert socket.clock.now_ms() - began == 30


def test_half_an_answer_is_kept_until_the_rest_comes(socket, connection):
    connection.greet(None)
    connection.send(CALL)
    rest, socket._incoming = socket._incoming[7:], socket._incoming[:7]
    assert connection.receive(10) is None
    socket._incoming = rest
    assert connection.receive(10).code is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_closed_connection_is_an_os_error(socket, connection):
    connection.greet(None)
    connection.send(CALL)
    socket.closed = True
    with pytest.raises(OSError, match="closed the connection"):
        connection.receive(10)


def test_an_answer_that_cannot_be_read_breaks_the_connection(socket, connection):
    connection.greet(None)
    connection.send(CALL)
    socket._incoming = struct.pack(">ii", 5, 2) + b"\0"
    with pytest.raises(ConnectionError, match="answer to Heartbeat cannot be read"):
        connection.receive(10)


def test_a_broker_that_does_not_greet_back_is_given_up(socket, connection):
    socket.mute = True
    with pytest.raises(OSError, match="did not answer ApiVersions within 1000 ms"):
        connection.greet(None)


def test_the_login_is_repeated_when_four_fifths_of_the_session_are_over(socket, connection):
    socket.session_ms = 10_000
    connection.greet(LOGIN)
    socket.requests.clear()
    for pause_ms, expected in (
        (7_999, ["Heartbeat"]),
        (1, ["SaslHandshake", "SaslAuthenticate", "Heartbeat"]),
        (7_999, ["Heartbeat"]),
        (1, ["SaslHandshake", "SaslAuthenticate", "Heartbeat"]),
    ):
        socket.clock.pause_ms(pause_ms)
        connection.send(CALL)
        connection.receive(10)
        assert socket.requests == expected
        socket.requests.clear()


def test_without_a_session_lifetime_the_login_is_good_for_ever(socket, connection):
    connection.greet(LOGIN)
    socket.clock.pause_ms(10_000_000)
    socket.requests.clear()
    connection.send(CALL)
    assert socket.requests == ["Heartbeat"]


def test_the_plain_token_is_what_the_standard_says(socket, connection):
    sent: list[bytes] = []
    send = socket.sendall
    socket.sendall = lambda data: (sent.append(data), send(data))
    connection.greet(LOGIN)
    assert base64.b64decode(b"AG1lAHNlY3JldA==") in sent[-1]
