"""Fetches jars with an installed Maven: a project file with exactly the pinned artifacts, none of their own
dependencies.

Called by jars.py. The project file names no repository, so the user's own Maven settings (mirrors, proxies) apply.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from streamfleet_devbroker.errors import JarsUnavailableError
from streamfleet_devbroker.java import Java
from streamfleet_devbroker.pinned import Jar

HINT = "connect this machine to the network once, or copy the cache directory from a machine that has it"
_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"

_DEPENDENCY = (
    "<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
    "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>"
)


def is_installed() -> bool:
    """Whether `mvn` is on PATH."""
    return shutil.which("mvn") is not None


def fetch(jars: Sequence[Jar], into: Path, *, cache: Path, java: Java, report: Callable[[str], None]) -> None:
    """Let Maven resolve `jars` and copy them into the directory `into`."""
    del cache, java  # Maven has its own of both
    report(f"fetching {len(jars)} jars with Maven (once)")
    with tempfile.TemporaryDirectory(prefix="streamfleet-maven-") as project:
        (Path(project) / "pom.xml").write_text(project_file(jars), "utf-8")
        # -U: a failure that Maven remembers from an earlier, offline run must not be the last word.
        command = ["mvn", "--batch-mode", "-U", "-f", f"{project}/pom.xml", _PLUGIN, f"-DoutputDirectory={into}"]
        _run(command, {jar.file_name for jar in jars}, report)


def project_file(jars: Sequence[Jar]) -> str:
    """A Maven project whose dependencies are exactly `jars`."""
    dependencies = "\n".join(
        _DEPENDENCY.format(group=jar.group, artifact=jar.artifact, version=jar.version) for jar in jars
    )
    return (
        "<project><modelVersion>4.0.0</modelVersion><groupId>streamfleet</groupId>"
        "<artifactId>pinned-jars</artifactId><version>1</version>\n"
        f"<dependencies>\n{dependencies}\n</dependencies></project>\n"
    )


def _run(command: list[str], wanted: set[str], report: Callable[[str], None]) -> None:
    arrived: set[str] = set()
    reasons: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as mvn:
        assert mvn.stdout is not None
        for line in mvn.stdout:
            if "ERROR" in line:
                reasons.append(line.split("]", 1)[-1].strip())
            elif "Downloaded" in line and (here := wanted & set(line.replace("/", " ").split())):
                arrived |= here
                report(f"{len(arrived)} of {len(wanted)}: {', '.join(here)}")
    if mvn.returncode != 0:
        reason = next((reason for reason in reasons if reason), f"exit code {mvn.returncode}")
        raise JarsUnavailableError(f"Maven could not fetch them ({reason[:300]})", hint=HINT)
