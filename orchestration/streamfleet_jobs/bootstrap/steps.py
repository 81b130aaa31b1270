"""The record that a step leaves behind, and who may leave one. Called by job.py.

A record holds the digest of the spec and what the step can be proven by; it is written last, as a whole. A step is skipped only if
its record is of this spec and its proof holds now.

    <directory>/fence.json            the highest token that was seen here; the platform raises it when it publishes
    <directory>/<state>.json          one per finished step
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from streamfleet_jobs.bootstrap.spec import BootstrapSpec
from streamfleet_jobs.errors import RefusedError, UnavailableError

STATES = ("computed", "staged", "changelog_written", "verified")
_CHUNK = 1 << 20
_FORMER_SECONDS = 60.0
"""How long a former attempt may take to notice that it is fenced."""


class RunDirectory:
    """One run's records; held by one process at a time."""

    def __init__(self, spec: BootstrapSpec) -> None:
        self._spec = spec
        self.path = spec.directory
        self.path.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Takes the token's place, which ends any former attempt at its next step, and waits for that. Refused if a newer token
        has been here.
        """
        with self._locked("fence.lock", 10.0):
            self.check_token()
            write_json(self.path / "fence.json", {"run_id": self._spec.run_id, "token": self._spec.token})
        with self._locked("lock", _FORMER_SECONDS):
            self.check_token()
            yield

    @contextmanager
    def _locked(self, name: str, seconds: float) -> Iterator[None]:
        deadline = time.monotonic() + seconds
        with (self.path / name).open("w") as lock:
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except OSError as error:
                    if time.monotonic() > deadline:
                        raise UnavailableError(
                            f"another process works on run {self._spec.run_id}", hint="end it, or wait until it is done"
                        ) from error
                time.sleep(0.1)
            yield

    def check_token(self) -> None:
        seen = read_json(self.path / "fence.json")
        if seen is None:
            return
        if seen["run_id"] != self._spec.run_id:
            raise RefusedError(
                f"{self.path.name} is the directory of run {seen['run_id']}",
                hint="give every run a directory of its own",
            )
        if seen["token"] > self._spec.token:
            raise RefusedError(
                f"token {self._spec.token} is fenced: {seen['token']} has been seen",
                hint="a newer attempt goes on with this run; leave it to that one",
            )

    def record(self, state: str) -> dict[str, Any] | None:
        """What a finished step wrote, if it was for this spec."""
        found = read_json(self.path / f"{state}.json")
        if found is None:
            return None
        if found["spec"] != self._spec.digest:
            raise RefusedError(
                f"run {self._spec.run_id} was begun with another spec", hint="begin a new run, with a new epoch"
            )
        detail: dict[str, Any] = found["detail"]
        return detail

    def finish(self, state: str, detail: dict[str, Any]) -> None:
        write_json(self.path / f"{state}.json", {"spec": self._spec.digest, "detail": detail})


def read_json(path: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(path.read_bytes())
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    return found


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Replaced as a whole, and on disk before anybody relies on it."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with draft.open("w") as file:
        json.dump(content, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def checksums(root: Path, files: Iterable[Path]) -> dict[str, str]:
    """SHA-256 of files, by their names below `root`."""
    return {str(file.relative_to(root)): sha256(file) for file in sorted(files)}


def sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def still_there(root: Path, wanted: dict[str, str]) -> bool:
    """Whether all files are what they were."""
    return all((root / name).is_file() and sha256(root / name) == digest for name, digest in wanted.items())
