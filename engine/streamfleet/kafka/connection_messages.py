"""What is said once per connection: the broker's versions, and who we are (SASL).

Called by connection.py.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from kafka.protocol.metadata.api_versions import (  # type: ignore[import-untyped]
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from kafka.protocol.sasl import (  # type: ignore[import-untyped]
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

from streamfleet.kafka.error_codes import ErrorCode
from streamfleet.kafka.wire import PINNED, STREAMS_GROUPS, Call

API_KEYS: Mapping[int, str] = {
    8: "OffsetCommit",
    9: "OffsetFetch",
    10: "FindCoordinator",
    11: "JoinGroup",
    12: "Heartbeat",
    13: "LeaveGroup",
    14: "SyncGroup",
    17: "SaslHandshake",
    18: "ApiVersions",
    22: "InitProducerId",
    25: "AddOffsetsToTxn",
    26: "EndTxn",
    28: "TxnOffsetCommit",
    36: "SaslAuthenticate",
    44: "IncrementalAlterConfigs",
    88: "StreamsGroupHeartbeat",
    89: "StreamsGroupDescribe",
}
"""Kafka's numbers of the requests this client sends."""


@dataclass(frozen=True)
class VersionsAnswer:
    code: ErrorCode
    ranges: Mapping[str, tuple[int, int]]
    """Oldest and newest version by request, of those this client sends."""


@dataclass(frozen=True)
class HandshakeAnswer:
    code: ErrorCode
    mechanisms: tuple[str, ...]


@dataclass(frozen=True)
class AuthenticateAnswer:
    code: ErrorCode
    message: str | None
    token: bytes
    session_lifetime_ms: int
    """How long the broker believes us; 0: for the life of the connection."""


def api_versions(software_version: str) -> Call[VersionsAnswer]:
    request = ApiVersionsRequest(
        client_software_name="streamfleet", client_software_version=software_version, version=PINNED["ApiVersions"]
    )
    return Call("ApiVersions", request, ApiVersionsResponse, _versions)


def sasl_handshake(mechanism: str) -> Call[HandshakeAnswer]:
    return Call("SaslHandshake", SaslHandshakeRequest(mechanism=mechanism), SaslHandshakeResponse, _handshake)


def sasl_authenticate(token: bytes) -> Call[AuthenticateAnswer]:
    return Call("SaslAuthenticate", SaslAuthenticateRequest(auth_bytes=token), SaslAuthenticateResponse, _authenticated)


def unsupported(ranges: Mapping[str, tuple[int, int]], *, not_needed: Collection[str] = STREAMS_GROUPS) -> list[str]:
    """The pinned requests that a broker with these ranges cannot answer, as text."""
    bad = []
    for name, version in PINNED.items():
        if name in not_needed:
            continue
        oldest, newest = ranges.get(name, (0, -1))
        if not oldest <= version <= newest:
            has = f"{oldest} to {newest}" if newest >= 0 else "none"
            bad.append(f"{name} {version} (the broker has {has})")
    return bad


def _versions(response: Any) -> VersionsAnswer:
    code = ErrorCode.of(response.error_code)
    ranges = {
        API_KEYS[entry.api_key]: (entry.min_version, entry.max_version)
        for entry in response.api_keys
        if entry.api_key in API_KEYS
    }
    return VersionsAnswer(code, ranges)


def _handshake(response: Any) -> HandshakeAnswer:
    return HandshakeAnswer(ErrorCode.of(response.error_code), tuple(response.mechanisms))


def _authenticated(response: Any) -> AuthenticateAnswer:
    return AuthenticateAnswer(
        ErrorCode.of(response.error_code),
        response.error_message,
        bytes(response.auth_bytes),
        response.session_lifetime_ms,
    )
