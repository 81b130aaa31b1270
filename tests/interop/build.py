"""Builds the Java worker: Maven finds Kafka Streams, javac compiles. Called by side.py, and does nothing when nothing changed."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).parent / "java"
BUILT = Path(__file__).parents[2] / "build" / "interop"
NEEDED = ("java", "javac", "mvn")
# What a JVM spends most on when it lives for seconds only: its compiler and its collector.
OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


def java_command() -> list[str]:
    """What starts the worker. Needs a JDK 17 and Maven."""
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing:
        raise RuntimeError(f"not installed: {', '.join(missing)}; Java Kafka Streams is built with a JDK 17 and Maven")
    BUILT.mkdir(parents=True, exist_ok=True)
    with (BUILT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        class_path = _class_path()
        classes = _classes(class_path)
    return ["java", *OPTIONS, "-cp", f"{classes}:{class_path}", "interop.Worker"]


def _class_path() -> str:
    pom = HERE / "pom.xml"
    path = BUILT / f"classpath-{_hash(pom)}"
    if not path.exists():
        part = path.with_suffix(".part")
        subprocess.run(
            ["mvn", "-q", "-f", pom, "dependency:build-classpath", f"-Dmdep.outputFile={part}"],
            check=True,
            capture_output=True,
            timeout=240,
        )
        part.rename(path)
    return path.read_text("utf-8")


def _classes(class_path: str) -> Path:
    sources = sorted((HERE / "src").rglob("*.java"))
    classes = BUILT / f"classes-{_hash(*sources)}"
    if not classes.exists():
        part = classes.with_suffix(".part")
        subprocess.run(
            ["javac", "--release", "17", "-Xlint:all", "-Werror", "-d", part, "-cp", class_path, *sources],
            check=True,
            timeout=240,
        )
        part.rename(classes)
    return classes


def _hash(*files: Path) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]
