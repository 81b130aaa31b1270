"""Pinned jars: a list, a per-user cache, and the promise that Java only ever sees verified bytes.

Called by cluster.py for the broker's, and by the Spark jobs for their Kafka connector's. A complete cache is never
resolved again; a missing or damaged jar is fetched, by Maven where it is installed (maven.py), else by Ivy (ivy.py).
Both know the central repository by themselves, so no address is written here.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.resources
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from streamfleet_devbroker import ivy, maven
from streamfleet_devbroker.directories import KAFKA_VERSION, make_directory
from streamfleet_devbroker.errors import JarsUnavailableError
from streamfleet_devbroker.java import Java
from streamfleet_devbroker.pinned import Jar, parse_jars

Report = Callable[[str], None]


class Fetcher(Protocol):
    """Brings jars into a directory under their file names; raises JarsUnavailableError with the tool's reason."""

    def __call__(self, jars: Sequence[Jar], into: Path, *, cache: Path, java: Java, report: Report) -> None: ...


@dataclass(frozen=True)
class JarSet:
    """A directory that held every pinned jar, verified, a moment ago."""

    directory: Path
    jars: tuple[Jar, ...]

    @property
    def class_path(self) -> str:
        """In the order of the list, so that a class archive made with it stays valid."""
        return ":".join(str(self.directory / jar.file_name) for jar in self.jars)


def broker_jars() -> tuple[Jar, ...]:
    """The pinned list that ships with this package."""
    text = (importlib.resources.files("streamfleet_devbroker") / f"kafka-{KAFKA_VERSION}.jars").read_text("utf-8")
    return parse_jars(text)


def ensure_jars(cache: Path, java: Java, report: Report, *, fetcher: Fetcher | None = None) -> JarSet:
    """The broker's jars in `cache`."""
    directory = cache / f"kafka-{KAFKA_VERSION}" / "jars"
    return ensure_pinned(broker_jars(), directory, cache=cache, java=java, report=report, fetcher=fetcher)


def ensure_pinned(
    jars: tuple[Jar, ...], directory: Path, *, cache: Path, java: Java, report: Report, fetcher: Fetcher | None = None
) -> JarSet:
    """The complete, verified jars in `directory`; fetches only what is missing or damaged."""
    make_directory(directory)
    with _exclusive(directory.parent / "jars.lock"):
        wanting = [jar for jar in jars if not is_intact(directory / jar.file_name, jar)]
        if wanting:
            _fetch(wanting, directory, fetcher or _installed_fetcher(), cache=cache, java=java, report=report)
    return JarSet(directory, jars)


def is_intact(path: Path, jar: Jar) -> bool:
    """Whether the file is there and has the pinned checksum."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == jar.sha256
    except FileNotFoundError:
        return False


def _installed_fetcher() -> Fetcher:
    return maven.fetch if maven.is_installed() else ivy.fetch


def _fetch(wanting: Sequence[Jar], directory: Path, fetch: Fetcher, *, cache: Path, java: Java, report: Report) -> None:
    damaged = [jar.file_name for jar in wanting if (directory / jar.file_name).exists()]
    if damaged:
        report(f"damaged in the cache, fetching again: {', '.join(damaged)}")
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix="fetch-") as scratch:
        try:
            fetch(wanting, Path(scratch), cache=cache, java=java, report=report)
        except JarsUnavailableError as error:
            what = f"{len(wanting)} pinned jars are missing" + (" or damaged" if damaged else "")
            raise JarsUnavailableError(f"{what} in {directory}: {error.fact}", hint=error.hint) from error
        for jar in wanting:
            _accept(Path(scratch) / jar.file_name, jar, directory)
    report(f"{len(wanting)} jars fetched and verified")


def _accept(fetched: Path, jar: Jar, directory: Path) -> None:
    if not fetched.exists():
        raise JarsUnavailableError(f"{jar.coordinates} was not delivered", hint=maven.HINT)
    if not is_intact(fetched, jar):
        raise JarsUnavailableError(
            f"{jar.coordinates} was delivered with a checksum other than the pinned one",
            hint="the repository or a proxy changed it: do not use it, and ask whoever runs the proxy",
        )
    shutil.move(fetched, directory / jar.file_name)


@contextmanager
def _exclusive(lock: Path) -> Iterator[None]:
    # Two starts at once (two terminals, two test runs) must not fetch the same jars twice or see half of them.
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
