"""One connection to one broker: a socket, perhaps TLS, perhaps SASL, one request in flight. Ports and adapters.

Called by coordinator.py, which decides where to connect and what to do when it breaks. A connection is used by one
thread; whoever needs to ask while an answer is outstanding (a JoinGroup may wait for minutes) opens a second one.

Re-authentication (KIP-368): brokers may close a connection at the end of the session they granted, so the login is
repeated on the same connection when 0.8 of it is over, before the next request.
"""

from __future__ import annotations

import itertools
import socket
import ssl
from collections.abc import Collection, Mapping
from typing import Any, Protocol

from streamfleet.kafka import sasl, wire
from streamfleet.kafka.address import Address, parse_bootstrap_servers
from streamfleet.kafka.connection_messages import api_versions, sasl_authenticate, sasl_handshake, unsupported
from streamfleet.kafka.error_codes import ErrorCode
from streamfleet.kafka.errors import AuthenticationError, UnsupportedBrokerError
from streamfleet.kafka.patience import PatientClock
from streamfleet.kafka.security import SaslCredentials, SecuritySettings
from streamfleet.kafka.wire import AnswerT, Call

SOFTWARE_VERSION = "0.1.0"
REAUTHENTICATE_AT = 0.8


class Connection(Protocol):
    """Whatever goes wrong on the way raises OSError; then the connection is of no use any more."""

    def send(self, call: Call[Any]) -> None: ...

    def receive(self, wait_ms: int) -> Any | None:
        """The answer to the call that was sent, None if it has not come within the wait."""

    def close(self) -> None: ...


class Connector(Protocol):
    """Opens connections."""

    @property
    def bootstrap(self) -> tuple[Address, ...]:
        """Brokers that can be asked for any other."""

    def connect(self, address: Address) -> Connection:
        """A connection that is ready for requests. Raises OSError, or GroupFatalError if retrying is pointless."""


class TcpConnector:
    """Connects as the client settings say: `bootstrap.servers`, `security.protocol`, `sasl.*`, `ssl.*`."""

    def __init__(
        self, settings: Mapping[str, Any], clock: PatientClock, *, not_needed: Collection[str] = wire.STREAMS_GROUPS
    ) -> None:
        """`not_needed` are the requests that a broker may do without."""
        self._not_needed = not_needed
        self._bootstrap = parse_bootstrap_servers(str(settings.get("bootstrap.servers", "")))
        self._client_id = str(settings.get("client.id", "streamfleet"))
        self._setup_timeout_ms = int(settings.get("socket.connection.setup.timeout.ms", 5_000))
        self._security = SecuritySettings.from_mapping(settings)
        self._tls = self._security.tls.context() if self._security.tls else None
        self._clock = clock

    @property
    def bootstrap(self) -> tuple[Address, ...]:
        return self._bootstrap

    def connect(self, address: Address) -> TcpConnection:
        open_socket = socket.create_connection(address, timeout=self._setup_timeout_ms / 1000)
        try:
            open_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                open_socket = self._secured(open_socket, address)
            connection = TcpConnection(open_socket, self._client_id, self._clock, self._setup_timeout_ms)
            connection.greet(self._security.sasl, self._not_needed)
        except BaseException:
            open_socket.close()
            raise
        return connection

    def _secured(self, plain: socket.socket, address: Address) -> ssl.SSLSocket:
        assert self._tls is not None
        try:
            return self._tls.wrap_socket(plain, server_hostname=address.host)
        except ssl.SSLCertVerificationError as error:
            raise AuthenticationError(
                f"the certificate of broker {address} is not trusted: {error.verify_message}",
                hint="ssl.ca.location must name the authority that signed it, and its names must contain the host",
            ) from error


class TcpConnection:
    """Implements Connection."""

    def __init__(self, open_socket: socket.socket, client_id: str, clock: PatientClock, setup_timeout_ms: int) -> None:
        self._socket = open_socket
        self._client_id = client_id
        self._clock = clock
        self._setup_timeout_ms = setup_timeout_ms
        self._frames = wire.FrameBuffer()
        self._correlation_ids = itertools.count(1)
        self._in_flight: tuple[Call[Any], int] | None = None
        self._credentials: SaslCredentials | None = None
        self._reauthenticate_at_ms: int | None = None

    def greet(self, credentials: SaslCredentials | None, not_needed: Collection[str] = wire.STREAMS_GROUPS) -> None:
        """Check the broker's versions and log in."""
        versions = self._ask(api_versions(SOFTWARE_VERSION))
        bad = [f"ApiVersions: {versions.code.name}"]
        if versions.code is ErrorCode.NONE:
            bad = unsupported(versions.ranges, not_needed=not_needed)
        if bad:
            wanted = "4.0 or newer is needed" if not_needed else "4.2 or newer with streams.version=1 is needed"
            raise UnsupportedBrokerError(f"the broker does not speak {'; '.join(bad)}", hint=f"Apache Kafka {wanted}")
        self._credentials = credentials
        if credentials is not None:
            self._authenticate(credentials)

    def send(self, call: Call[Any]) -> None:
        if self._reauthenticate_at_ms is not None and self._clock.now_ms() >= self._reauthenticate_at_ms:
            assert self._credentials is not None
            self._authenticate(self._credentials)
        self._transmit(call)

    def receive(self, wait_ms: int) -> Any | None:
        assert self._in_flight is not None, "nothing was asked"
        frame = self._next_frame(wait_ms)
        if frame is None:
            return None
        call, correlation_id = self._in_flight
        self._in_flight = None
        return _read(call, correlation_id, frame)

    def close(self) -> None:
        self._socket.close()

    def _transmit(self, call: Call[Any]) -> None:
        assert self._in_flight is None, "an answer is outstanding"
        correlation_id = next(self._correlation_ids)
        self._socket.settimeout(self._setup_timeout_ms / 1000)
        self._socket.sendall(wire.encode(call, correlation_id, self._client_id))
        self._in_flight = (call, correlation_id)

    def _next_frame(self, wait_ms: int) -> bytes | None:
        deadline_ms = self._clock.now_ms() + wait_ms
        while (frame := self._frames.take()) is None:
            # At least a millisecond: a time-out of 0 would mean "do not block", which TLS sockets report differently.
            self._socket.settimeout(max(1, deadline_ms - self._clock.now_ms()) / 1000)
            try:
                received = self._socket.recv(self._frames.missing)
            except TimeoutError:
                return None
            if not received:
                raise ConnectionError("the broker closed the connection")
            self._frames.feed(received)
        return frame

    def _ask(self, call: Call[AnswerT]) -> AnswerT:
        """Setting up is the only time when this client waits for an answer without doing anything else."""
        self._transmit(call)
        answer: AnswerT | None = self.receive(self._setup_timeout_ms)
        if answer is None:
            raise ConnectionError(f"the broker did not answer {call.name} within {self._setup_timeout_ms} ms")
        return answer

    def _authenticate(self, credentials: SaslCredentials) -> None:
        handshake = self._ask(sasl_handshake(credentials.mechanism))
        if handshake.code is not ErrorCode.NONE:
            raise AuthenticationError(
                f"the broker does not accept {credentials.mechanism} ({handshake.code.name})",
                hint=f"set sasl.mechanism to one of {', '.join(handshake.mechanisms)}",
            )
        talk, lifetime_ms = sasl.conversation(credentials), 0
        while (token := talk.next_token()) is not None:
            answer = self._ask(sasl_authenticate(token))
            if answer.code is not ErrorCode.NONE:
                raise AuthenticationError(
                    f"the broker refused the login of {credentials.username}: {answer.message or answer.code.name}",
                    hint="check sasl.username and sasl.password",
                )
            talk.hear(answer.token)
            lifetime_ms = answer.session_lifetime_ms
        self._reauthenticate_at_ms = (
            self._clock.now_ms() + int(lifetime_ms * REAUTHENTICATE_AT) if lifetime_ms > 0 else None
        )


def _read(call: Call[Any], correlation_id: int, frame: bytes) -> Any:
    try:
        return wire.decode(call, correlation_id, frame)
    except OSError:
        raise
    except Exception as error:  # bytes that do not decode: nothing that follows on this connection can be trusted
        raise ConnectionError(f"the broker's answer to {call.name} cannot be read: {error}") from error
