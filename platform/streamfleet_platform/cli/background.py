"""A server in the background, for `up` and `down`: started once per data directory, known by process and start time, ended by
exactly that. What it logs is in the directory too.

    DATA/server.json       which process it is, and its address
    DATA/connection.json   the token made for the person who called `up` (0600)
    DATA/server.log
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from streamfleet_platform.api.token_file import TokenFile
from streamfleet_platform.cli.connection import KnownServer, known_server, known_server_file, write_private
from streamfleet_platform.errors import FleetError, TransientError
from streamfleet_platform.runtime.keeper import identity, is_same, read_json, send_signal, write_json
from streamfleet_platform.server.settings import make_data_directory

READY_SECONDS = 60.0
STOP_SECONDS = 30.0
TOKEN_NAME = "local"  # noqa: S105  the name of a token, not a token
_POLL_SECONDS = 0.1
_TAIL_LINES = 20


class BackgroundServer:
    """The server of one data directory."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self.log_file = data / "server.log"
        self.tokens = TokenFile(data / "tokens.json")

    @contextmanager
    def alone(self) -> Iterator[None]:
        """One `up` or `down` at a time."""
        make_data_directory(self._data)
        descriptor = os.open(self._data / "up.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def running(self) -> KnownServer | None:
        """How to reach it; None if it does not run."""
        record = self._record()
        if record is None or not is_same(record["process"]):
            return None
        return KnownServer(server=record["url"], token=self.own_token())

    def start(self, command: Sequence[str], url: str, variables: Mapping[str, str]) -> KnownServer:
        """Start it, and wait until it is ready. TransientError with its last words if it ends instead. What may hold a password is
        among `variables`: other users of a machine can read command lines.
        """
        known = KnownServer(server=url, token=self.own_token())
        with self.log_file.open("ab") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                close_fds=True,
                env={**os.environ, **variables},
            )
        write_json(self._data / "server.json", {"process": identity(process.pid), "url": url})
        self._wait_until_ready(process, url)
        write_private(known_server_file(), known.model_dump_json())
        return known

    def stop(self) -> bool:
        """End it. False: it did not run."""
        record = self._record()
        if record is None:
            return False
        ended = send_signal(record["process"], signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        while is_same(record["process"]):
            if time.monotonic() > deadline:
                send_signal(record["process"], signal.SIGKILL)
            time.sleep(_POLL_SECONDS)
        (self._data / "server.json").unlink(missing_ok=True)
        self._forget_connection(record["url"])
        return ended

    def own_token(self) -> str:
        """The token made for who calls `up`: the server keeps only hashes, so it lies beside them, for its owner alone."""
        file = self._data / "connection.json"
        token = (read_json(file) or {}).get("token")
        if isinstance(token, str) and self.tokens.principal(token) is not None:
            return token
        if any(entry.name == TOKEN_NAME for entry in self.tokens.entries()):
            self.tokens.revoke(TOKEN_NAME)
        made = self.tokens.create(TOKEN_NAME, "admin", "all")
        write_private(file, f'{{"token": "{made}"}}\n')
        return made

    def _record(self) -> dict[str, Any] | None:
        return read_json(self._data / "server.json")

    def _wait_until_ready(self, process: subprocess.Popen[bytes], url: str) -> None:
        deadline = time.monotonic() + READY_SECONDS
        with httpx.Client(base_url=url, timeout=2.0, trust_env=False) as client:
            while time.monotonic() < deadline:
                if process.poll() is not None:
                    raise TransientError(f"the server ended with exit code {process.returncode}:\n{self._last_words()}")
                try:
                    if client.get("/readyz").status_code == httpx.codes.OK:
                        return
                except httpx.TransportError:
                    pass  # not there yet
                time.sleep(_POLL_SECONDS)
        raise TransientError(
            f"the server is not ready after {READY_SECONDS:g} s:\n{self._last_words()}", hint=f"see {self.log_file}"
        )

    def _last_words(self) -> str:
        lines = self.log_file.read_text("utf-8", errors="replace").splitlines()
        return "\n".join(lines[-_TAIL_LINES:])

    def _forget_connection(self, url: str) -> None:
        try:
            known = known_server()
        except FleetError:
            return
        if known is not None and known.server == url:
            known_server_file().unlink(missing_ok=True)


def server_command(arguments: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "streamfleet_platform.cli", "server", *arguments]
