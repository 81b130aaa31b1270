"""An app's entry point becomes a lock, without its code ever being imported here: a child process does it (compile_child.py).

The child gets no environment, so no credentials; a directory of its own to stand in; and limits of time and memory. Its answer
comes over a pipe that carries nothing else, and is checked like any other input. The child runs as the same user: what it cannot
do, and what keeps it from it, is at the top of compile_child.py and in docs/topology-diff.md.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamfleet
from streamfleet_platform.errors import CompileError, InvalidLockError
from streamfleet_platform.model.quantities import bytes_text
from streamfleet_platform.topologies.lock import TopologyLock

_CHILD = Path(__file__).with_name("compile_child.py")
_LONGEST_ANSWER = 8 * 2**20
_STDERR_TAIL = 2000


@dataclass(frozen=True)
class CompileLimits:
    """What a child may use."""

    seconds: float = 30.0
    memory_bytes: int = 2 * 2**30
    """Address space: what is mapped, not only what is used. The engine and its libraries need a third of this."""


@dataclass(frozen=True)
class Compiled:
    """A lock, and how well the child was confined."""

    lock: TopologyLock
    has_network_namespace: bool
    """False: unprivileged namespaces are not allowed here, and only Python's own hooks kept the app off the network."""
    svg: str = ""
    """The topology as a picture."""


def compile_topology(
    code: Path,
    entrypoint: str,
    *,
    settings: Mapping[str, Any] | None = None,
    require_names: bool = True,
    limits: CompileLimits = CompileLimits(),
) -> Compiled:
    """`code` is a revision's directory. `settings` matter to an entry point that returns a StreamsBuilder."""
    engine = Path(streamfleet.__file__).resolve().parents[1]
    order = {
        "entrypoint": entrypoint,
        "import_path": [str(code.resolve()), str(engine)],
        "settings": {"application.id": "any", **(settings or {})},
        "memory_bytes": limits.memory_bytes,
        "cpu_seconds": max(1, round(limits.seconds)),
    }
    with tempfile.TemporaryDirectory(prefix="streamfleet-compile-") as directory:
        answer = _answer_of(order, Path(directory), entrypoint, limits)
    if "lock" not in answer:
        raise CompileError(
            f"{entrypoint} raised {answer.get('error')}: {answer.get('text')}",
            hint="fix the app; `streamfleet lock` shows where it was raised",
            traceback_tail=str(answer.get("traceback", "")),
        )
    try:
        lock = TopologyLock.from_topology_json(str(answer["lock"]))
    except InvalidLockError as error:
        raise CompileError(f"{entrypoint} gave no lock: {error.fact}", hint="use the engine's own Topology") from error
    if require_names and (generated := lock.generated_names()):
        raise CompileError(
            f"{entrypoint} has generated names: {', '.join(generated)}",
            hint="name these stores and operators: generated names shift with the next edit, and state is lost",
        )
    return Compiled(lock, bool(answer.get("network_namespace")), str(answer.get("svg", "")))


def _answer_of(order: dict[str, Any], directory: Path, entrypoint: str, limits: CompileLimits) -> dict[str, Any]:
    read_fd, write_fd = os.pipe()
    command = [sys.executable, "-I", "-B", "-X", "utf8", str(_CHILD)]
    stderr_path = directory.parent / f"{directory.name}.stderr"
    with os.fdopen(read_fd, "rb", buffering=0) as answer, stderr_path.open("w+b") as stderr:
        stderr_path.unlink()
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=stderr,
            stderr=stderr,
            cwd=directory,
            env={"LC_ALL": "C.UTF-8", "HOME": str(directory), "TMPDIR": str(directory)},
            pass_fds=(write_fd,),
            start_new_session=True,
        )
        try:
            os.close(write_fd)
            data = _read_all(
                process, json.dumps(order | {"result_fd": write_fd}).encode(), answer.fileno(), limits.seconds
            )
        finally:
            _end(process)
        if data is None:
            raise CompileError(
                f"{entrypoint} took longer than {limits.seconds:g} s",
                hint="only declare the topology there; do work in processors",
            )
        if not data:
            raise _died(process, entrypoint, limits, _tail(stderr))
    return _decoded(data, entrypoint)


def _read_all(process: subprocess.Popen[bytes], order: bytes, fd: int, seconds: float) -> bytes | None:
    """Everything up to the end of the answer; None when time is up."""
    assert process.stdin is not None
    try:
        process.stdin.write(order)
        process.stdin.close()
    except BrokenPipeError:
        return b""
    deadline, data = time.monotonic() + seconds, bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(fd, selectors.EVENT_READ)
        while len(data) <= _LONGEST_ANSWER:
            if not selector.select(max(0.0, deadline - time.monotonic())):
                return None
            chunk = os.read(fd, 65_536)
            if not chunk:
                break
            data += chunk
    return bytes(data)


def _end(process: subprocess.Popen[bytes]) -> None:
    """The child and what it may have started: they share a session."""
    # The answer is over, or time is. A child that is already ending keeps its exit code.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _died(process: subprocess.Popen[bytes], entrypoint: str, limits: CompileLimits, tail: str) -> CompileError:
    code = process.returncode
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        fact = f"{entrypoint} used more than {limits.seconds:g} s of CPU, or was killed"
    elif code < 0:
        fact = f"{entrypoint} ended by {signal.Signals(-code).name}"
    else:
        fact = f"{entrypoint} ended its process with exit code {code} before there was a topology"
    return CompileError(fact, hint=f"memory is limited to {bytes_text(limits.memory_bytes)}", traceback_tail=tail)


def _tail(file: Any) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _STDERR_TAIL))
    return str(file.read().decode(errors="replace"))


def _decoded(data: bytes, entrypoint: str) -> dict[str, Any]:
    try:
        answer = json.loads(data)
    except ValueError:
        answer = None
    if len(data) > _LONGEST_ANSWER or not isinstance(answer, dict):
        raise CompileError(f"{entrypoint} disturbed the answer of its process", hint="do not write to file descriptors")
    return answer
