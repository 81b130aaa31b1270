"""SASL, the client's side: PLAIN (RFC 4616) and SCRAM (RFC 5802) as conversations of tokens.

Called by connection.py, once per authentication. A conversation gives the next token to send and is shown the
broker's answer to it. SCRAM also proves the broker: one that does not know the password cannot sign.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from typing import Protocol

from streamfleet.kafka.errors import AuthenticationError
from streamfleet.kafka.security import SaslCredentials

MIN_ITERATIONS = 4096
"""Kafka's own minimum; fewer would mean that somebody wants a cheap proof to guess the password from."""


class Conversation(Protocol):
    def next_token(self) -> bytes | None:
        """What to send now; None: the conversation is over."""

    def hear(self, token: bytes) -> None:
        """The broker's answer to the last token."""


def conversation(credentials: SaslCredentials) -> Conversation:
    if credentials.mechanism == "PLAIN":
        return Plain(credentials)
    return Scram(credentials, secrets.token_urlsafe(24))


class Plain:
    """One token, no answer."""

    def __init__(self, credentials: SaslCredentials) -> None:
        self._token: bytes | None = f"\0{credentials.username}\0{credentials.password}".encode()

    def next_token(self) -> bytes | None:
        token, self._token = self._token, None
        return token

    def hear(self, token: bytes) -> None:
        pass


class Scram:
    """Two tokens: who we are with a nonce, then the proof that we know the password."""

    def __init__(self, credentials: SaslCredentials, nonce: str) -> None:
        self._digest = hashlib.sha512 if credentials.mechanism == "SCRAM-SHA-512" else hashlib.sha256
        self._password = credentials.password.encode()
        self._nonce = nonce
        escaped = credentials.username.replace("=", "=3D").replace(",", "=2C")
        self._first_bare = f"n={escaped},r={nonce}"
        self._next: bytes | None = f"n,,{self._first_bare}".encode()
        self._expected_signature: bytes | None = None

    def next_token(self) -> bytes | None:
        token, self._next = self._next, None
        return token

    def hear(self, token: bytes) -> None:
        fields = dict(part.split("=", 1) for part in token.decode().split(",") if "=" in part)
        if "e" in fields:
            raise AuthenticationError(
                f"the broker refused the login: {fields['e']}", hint="check sasl.username and sasl.password"
            )
        if self._expected_signature is None:
            self._prove(token.decode(), fields)
        elif not hmac.compare_digest(base64.b64decode(fields.get("v", "")), self._expected_signature):
            raise AuthenticationError(
                "the broker could not prove that it knows the password", hint="is this the right broker?"
            )

    def _prove(self, server_first: str, fields: dict[str, str]) -> None:
        nonce, iterations = fields.get("r", ""), int(fields.get("i", "0"))
        if not nonce.startswith(self._nonce) or nonce == self._nonce or iterations < MIN_ITERATIONS:
            raise AuthenticationError(
                "the broker's SCRAM challenge is not acceptable", hint="is this the right broker?"
            )
        salted = hashlib.pbkdf2_hmac(self._digest().name, self._password, base64.b64decode(fields["s"]), iterations)
        client_key = self._sign(salted, b"Client Key")
        final = f"c={base64.b64encode(b'n,,').decode()},r={nonce}"
        message = f"{self._first_bare},{server_first},{final}".encode()
        signature = self._sign(self._digest(client_key).digest(), message)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self._expected_signature = self._sign(self._sign(salted, b"Server Key"), message)
        self._next = f"{final},p={base64.b64encode(proof).decode()}".encode()

    def _sign(self, key: bytes, message: bytes) -> bytes:
        return hmac.new(key, message, self._digest).digest()
