"""What starts each runner: environments of their own for the peers, classes for Java. Built once, kept under build/bench."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
BUILT = ROOT / "build" / "bench"
JAVA_OPTIONS = ("-Xmx1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error")


@dataclass(frozen=True)
class Runner:
    """One system; what its fields mean is said in runners.toml."""

    name: str
    kind: str
    workloads: tuple[str, ...]
    thousands: int
    rate: int
    long: int | None = None
    packages: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    group: bool = True
    finals: tuple[str, ...] = ()
    default: bool = True

    def command(self) -> list[str]:
        """Built first where that has not been done; RuntimeError says why it cannot be."""
        if self.kind == "streamfleet":
            return [sys.executable, "-m", "tests.bench.peers.runners.streamfleet_app"]
        if self.kind == "java":
            return ["java", *JAVA_OPTIONS, *self.options, "-cp", _java_class_path(), "bench.Main"]
        return [str(_environment(self)), str(HERE / "runners" / f"{self.kind}_app.py")]


def all_runners() -> dict[str, Runner]:
    tables = tomllib.loads((HERE / "runners.toml").read_text("utf-8"))
    return {name: _runner(name, table) for name, table in tables.items()}


def _runner(name: str, table: dict[str, Any]) -> Runner:
    lists = {field: tuple(value) for field, value in table.items() if isinstance(value, list)}
    return Runner(**{"name": name, "kind": name, **table, **lists})


def _environment(runner: Runner) -> Path:
    directory = BUILT / f"{runner.name}-{_digest(' '.join(runner.packages).encode())}"
    python = directory / "bin" / "python"
    if not (directory / "complete").exists():
        print(f"building an environment for {runner.name}: {', '.join(runner.packages)}", flush=True)
        shutil.rmtree(directory, ignore_errors=True)
        _run([sys.executable, "-m", "venv", str(directory)], runner.name)
        _run([str(python), "-m", "pip", "install", "--quiet", *runner.packages], runner.name)
        (directory / "complete").touch()
    return python


def _java_class_path() -> str:
    missing = [tool for tool in ("java", "javac", "mvn") if shutil.which(tool) is None]
    if missing:
        raise RuntimeError(f"not installed: {', '.join(missing)}")
    sources = sorted((HERE / "java" / "src").rglob("*.java"))
    pom = HERE / "java" / "pom.xml"
    directory = BUILT / f"java-{_digest(*(path.read_bytes() for path in (pom, *sources)))}"
    listed = directory / "classpath"
    if not (directory / "complete").exists():
        print("building Java's workloads", flush=True)
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        _run(["mvn", "-q", "-f", str(pom), "dependency:build-classpath", f"-Dmdep.outputFile={listed}"], "java")
        arguments = ["--release", "17", "-d", str(directory / "classes"), "-cp", listed.read_text("utf-8")]
        _run(["javac", *arguments, *map(str, sources)], "java")
        (directory / "complete").touch()
    return f"{directory / 'classes'}:{listed.read_text('utf-8')}"


def _run(command: list[str], name: str) -> None:
    result = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    if result.returncode:
        raise RuntimeError(f"{name} could not be built: {(result.stderr or result.stdout).strip()[-500:]}")


def _digest(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:12]
