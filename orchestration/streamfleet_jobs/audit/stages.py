"""Stages: results of a run on disk, so that a run that was cut off goes on where it was. A result exists when its file does.

spec.json                what was asked, without settings of clients
stages/pin.json          offsets, settings of topics, digests of stores: fixed once
stages/land/<store>/     slim copies
stages/store-<store>.json what they add up to, and what is wrong with it
result.json, report.html the end
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from streamfleet_jobs.errors import RefusedError, SpecError

T = TypeVar("T")


class Stages:
    """Of one run, in its directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        try:
            (directory / "stages").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SpecError(
                f"{directory} cannot be written: {error.strerror}", hint="name another directory as output"
            ) from error

    def remember_spec(self, spec: dict[str, Any]) -> None:
        """Refuses a directory that belongs to another run."""
        path, content = self._directory / "spec.json", msgspec.json.format(msgspec.json.encode(spec))
        if path.exists() and path.read_bytes() != content:
            raise RefusedError(
                f"{self._directory} holds another audit", hint="give every run an output directory of its own"
            )
        write_whole(path, content)

    def value(self, name: str, type_: type[T], make: Callable[[], T]) -> T:
        """What was made before, or is made now."""
        path = self._directory / "stages" / f"{name}.json"
        if not path.exists():
            write_whole(path, msgspec.json.encode(make()))
        return msgspec.json.decode(path.read_bytes(), type=type_)

    def landed(self, store: str) -> Path:
        return self._directory / "stages" / "land" / store

    @property
    def root(self) -> Path:
        """Holds keys: removed when the run is over."""
        return self._directory / "stages"


def write_whole(path: Path, content: bytes) -> None:
    """All of it or nothing."""
    half = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    half.write_bytes(content)
    half.replace(path)
