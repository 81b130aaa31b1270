"""The record that a step leaves behind, and who may leave one. Called by job.py.

A record holds the digest of the spec and what the step can be proven by; it is written last, as a whole. A step is skipped only if
its record is of this spec and its proof holds now.

    <directory>/fence.json            the highest token that was seen here
    <directory>/<state>.json          one per finished step
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from streamfleet_jobs.bootstrap.spec import BootstrapSpec
from streamfleet_jobs.errors import RefusedError, UnavailableError

STATES = ("computed", "staged", "changelog_written", "verified")
_CHUNK = 1 << 20


class RunDirectory:
    """One run's records; held by one process at a time."""

    def __init__(self, spec: BootstrapSpec) -> None:
        self._spec = spec
        self.path = spec.directory
        self.path.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Takes the token's place; refused if a newer one has been here."""
        with (self.path / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise UnavailableError(
                    f"another process works on run {self._spec.run_id}", hint="end it, or wait until it is done"
                ) from error
            self.check_token()
            write_json(self.path / "fence.json", {"run_id": self._spec.run_id, "token": self._spec.token})
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
