"""The tokens file: who may call the API. `streamfleet token` writes it, the gatekeeper reads it.

    {"tokens": [{"name": "ci", "role": "viewer", "teams": "all", "sha256": "...", "created_at": "...", "expires_at": null}]}

A token is 256 random bits, so one round of SHA-256 keeps it: there is nothing to guess. The file is the user's alone (0600); one
that others can read is not used. A server sees changes at the next call: a revoked token ends at once.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import stat
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from streamfleet_platform.api.access import Principal, Role
from streamfleet_platform.errors import ConflictError, InvalidRequestError, NotFoundError, TransientError
from streamfleet_platform.model.names import NAME_PATTERN

PREFIX = "sft_"
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
RoleName = Literal["viewer", "operator", "admin"]
Name = Annotated[str, Field(pattern=NAME_PATTERN)]


class Authenticator(Protocol):
    """Knows tokens."""

    def principal(self, token: str) -> Principal | None:
        """Whose it is; None for one that is not known, or no longer good."""


class TokenEntry(BaseModel):
    """One token, without what it takes to use it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Name
    role: RoleName
    teams: Literal["all"] | tuple[Name, ...] = ()
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    created_at: datetime
    expires_at: datetime | None = None

    @property
    def principal(self) -> Principal:
        return Principal(self.name, Role[self.role.upper()], None if self.teams == "all" else frozenset(self.teams))

    def is_expired(self, now: datetime) -> bool:
        return self.expires_at is not None and now >= self.expires_at


class _Tokens(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    tokens: tuple[TokenEntry, ...] = ()


class TokenFile:
    """One file; it need not be there yet. Any thread may ask."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._seen: tuple[int, int, int, int] | None = None
        self._known: Mapping[str, TokenEntry] = {}

    def principal(self, token: str) -> Principal | None:
        found = self._current().get(_digest(token))
        return None if found is None or found.is_expired(datetime.now(UTC)) else found.principal

    def entries(self) -> tuple[TokenEntry, ...]:
        return () if not self.path.exists() else self._read().tokens

    def create(
        self,
        name: str,
        role: RoleName,
        teams: tuple[str, ...] | Literal["all"],
        expires_at: datetime | None = None,
    ) -> str:
        """Make a token. This is the only time it can be seen."""
        token = PREFIX + secrets.token_urlsafe(32)
        try:
            entry = TokenEntry(
                name=name,
                role=role,
                teams=teams,
                sha256=_digest(token),
                created_at=datetime.now(UTC),
                expires_at=expires_at,
            )
        except ValidationError as error:
            raise InvalidRequestError(
                "the name of a token or of a team is none", hint="use lower-case letters, digits and - inside"
            ) from error
        with self._changing() as tokens:
            if any(other.name == name for other in tokens):
                raise ConflictError(f"there is a token {name} already", hint="revoke it first, or take another name")
            tokens.append(entry)
        return token

    def revoke(self, name: str) -> None:
        with self._changing() as tokens:
            left = [entry for entry in tokens if entry.name != name]
            if len(left) == len(tokens):
                raise NotFoundError(f"there is no token {name}", hint="see `streamfleet token list`")
            tokens[:] = left

    @contextmanager
    def _changing(self) -> Iterator[list[TokenEntry]]:
        """The entries to change; written when the block ends well. One process at a time."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(self.path.with_name(self.path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            tokens = list(self.entries())
            yield tokens
            self._write(_Tokens(tokens=tuple(tokens)))
        finally:
            os.close(lock)

    def _write(self, tokens: _Tokens) -> None:
        partial = self.path.with_name(self.path.name + ".partial")
        partial.unlink(missing_ok=True)
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(tokens.model_dump_json(indent=2) + "\n")
            file.flush()
            os.fsync(file.fileno())
        partial.replace(self.path)

    def _current(self) -> Mapping[str, TokenEntry]:
        with self._lock:
            try:
                status = self.path.stat()
            except FileNotFoundError:
                self._seen, self._known = None, {}
                return self._known
            seen = (status.st_mtime_ns, status.st_size, status.st_ino, status.st_mode)
            if seen != self._seen:
                self._known = {entry.sha256: entry for entry in self._read().tokens}
                self._seen = seen
            return self._known

    def _read(self) -> _Tokens:
        """TransientError if it cannot be used: then nobody gets in until somebody has put it right."""
        try:
            with self.path.open("rb") as file:
                if os.fstat(file.fileno()).st_mode & _OTHERS:
                    raise TransientError(
                        f"the tokens file {self.path} can be read by others", hint=f"chmod 600 {self.path}"
                    )
                return _Tokens.model_validate_json(file.read())
        except OSError as error:
            raise TransientError(f"the tokens file {self.path} cannot be read: {error.strerror or error}") from error
        except ValidationError as error:
            # the error itself would repeat what is in the file
            raise TransientError(
                f"the tokens file {self.path} is damaged", hint="restore it, or remove it and create tokens anew"
            ) from error


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
