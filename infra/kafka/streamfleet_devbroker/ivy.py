"""Fetches jars with Apache Ivy, for machines without Maven. Ivy comes with PySpark.

Called by jars.py. PySpark of this environment is used when it is there (the extra `spark`); else its source archive is
downloaded once (450 MB, a quarter of a minute on a fast line), one jar of 1.4 MB is kept and the rest thrown away:
installing PySpark for it would take minutes and half a gigabyte for good.
"""

from __future__ import annotations

import importlib.resources
import importlib.util
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from streamfleet_devbroker.directories import make_directory
from streamfleet_devbroker.errors import JarsUnavailableError
from streamfleet_devbroker.java import Java
from streamfleet_devbroker.maven import HINT
from streamfleet_devbroker.pinned import Jar

Report = Callable[[str], None]


def fetch(jars: Sequence[Jar], into: Path, *, cache: Path, java: Java, report: Report) -> None:
    """Let Ivy resolve `jars` and copy them into the directory `into`."""
    ivy_jar = _ivy_jar(cache, report)
    report(f"fetching {len(jars)} jars with Ivy (once, about half a minute)")
    with tempfile.TemporaryDirectory(prefix="streamfleet-ivy-") as scratch:
        (Path(scratch) / "ivy.xml").write_text(module_file(jars), "utf-8")
        # A user's local Maven repository with a .pom but no jar makes Ivy fail instead of downloading, and Java takes
        # the home directory from the system, not from $HOME: so Ivy gets a home of its own.
        command = [str(java.executable), *_trust(java), f"-Duser.home={scratch}", "-jar", str(ivy_jar)]
        command += ["-cache", f"{scratch}/cache", "-ivy", f"{scratch}/ivy.xml", "-confs", "default"]
        command += ["-retrieve", f"{into}/[artifact]-[revision].[ext]"]
        _run(command, len(jars), report)


def module_file(jars: Sequence[Jar]) -> str:
    """An Ivy module whose dependencies are exactly `jars`."""
    dependencies = "\n".join(
        f'<dependency org="{jar.group}" name="{jar.artifact}" rev="{jar.version}" transitive="false" conf="default"/>'
        for jar in jars
    )
    return (
        '<ivy-module version="2.0"><info organisation="streamfleet" module="pinned-jars"/>\n'
        f'<configurations><conf name="default"/></configurations>\n<dependencies>\n{dependencies}\n'
        "</dependencies></ivy-module>\n"
    )


def _run(command: list[str], wanted: int, report: Report) -> None:
    arrived = 0
    reasons: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "[SUCCESSFUL ]" in line:
                arrived += 1
                report(f"{arrived} of {wanted}: {line.split(']', 1)[1].split('!')[0].strip()}")
            elif "UNRESOLVED" in line or "FAILED" in line or "Exception" in line:
                reasons.append(line.strip(" :\t\n"))
    if process.returncode != 0 or reasons:
        raise _refusal(reasons or [f"exit code {process.returncode}"])


def _refusal(reasons: Sequence[str]) -> JarsUnavailableError:
    """The most telling of Ivy's complaints: an exception says more than the summary."""
    reason = next((reason for reason in reasons if "Exception" in reason), reasons[0])
    untrusted = "PKIX" in reason
    return JarsUnavailableError(
        f"Ivy could not fetch them ({reason[:300]})",
        hint="set JAVA_TOOL_OPTIONS=-Djavax.net.ssl.trustStore=... to one that trusts your network, or install Maven"
        if untrusted
        else HINT,
    )


def _trust(java: Java) -> list[str]:
    # The packaged Java knows public authorities only; where the system keeps a trust store for Java, with the
    # authorities of the company in it, that one is meant to be used.
    system_stores = (Path("/etc/ssl/certs/java/cacerts"), Path("/etc/pki/java/cacerts"))
    found = next((store for store in system_stores if store.exists()), None)
    return [f"-Djavax.net.ssl.trustStore={found}"] if java.packaged and found else []


def _ivy_jar(cache: Path, report: Report) -> Path:
    installed = importlib.util.find_spec("pyspark")
    for place in (installed.submodule_search_locations or ()) if installed else ():
        for jar in Path(place).glob("jars/ivy-*.jar"):
            return jar
    kept = cache / "ivy" / "ivy.jar"
    if not kept.exists():
        report("no Maven here; downloading PySpark's source archive for the Ivy inside it (once, 450 MB)")
        _extract_ivy(make_directory(kept.parent), kept)
    return kept


def _extract_ivy(directory: Path, kept: Path) -> None:
    pinned = importlib.resources.files("streamfleet_devbroker") / "pyspark.lock"
    with tempfile.TemporaryDirectory(dir=directory) as scratch, importlib.resources.as_file(pinned) as lock:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command = [*pip, "--no-binary=pyspark", "--require-hashes", "--dest", scratch, "-r", str(lock)]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        if answer.returncode != 0:
            detail = (answer.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
            raise JarsUnavailableError(f"neither Maven nor PySpark's Ivy could be had ({detail})", hint=HINT)
        archive = next(Path(scratch).glob("pyspark-*.tar.gz"))
        with tarfile.open(archive) as source:
            for member in source:
                if "/jars/ivy-" in member.name:
                    content = source.extractfile(member)
                    assert content is not None
                    half = directory / "ivy.jar.part"
                    half.write_bytes(content.read())
                    half.rename(kept)
                    return
    raise JarsUnavailableError("PySpark's archive has no Ivy inside", hint="install Maven")
