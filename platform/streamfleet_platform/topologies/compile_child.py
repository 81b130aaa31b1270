"""Runs in the child process: confines itself, imports an app's entry point and writes its topology as JSON to a pipe.

Started by compiler.py as a script, in Python's isolated mode, with an empty environment; what to do arrives on standard
input as JSON. It imports nothing but the standard library before it is confined, and never the platform.

What the kernel holds to, whatever the app's code does: limits of memory, CPU time, file size and open files; no gain of
privileges; and, where unprivileged namespaces are allowed, no network at all. What holds against code that plays by Python's
rules, but not against native code: no connections, no other processes, no writing outside its own directory, no reading outside
the code, Python and the system's own directories.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import sys
import traceback
from typing import Any

TAIL_LINES = 20
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38
_REFUSED_EVENTS = (
    "socket.connect",
    "socket.bind",
    "socket.sendto",
    "socket.sendmsg",
    "socket.getaddrinfo",
    "socket.gethostbyname",
    "subprocess.Popen",
    "os.system",
    "os.exec",
    "os.fork",
    "os.forkpty",
    "os.posix_spawn",
    "os.spawn",
    "os.kill",
    "os.killpg",
    "pty.spawn",
    "ctypes.dlopen",
)
_CHANGES = frozenset(
    {
        "os.remove",
        "os.rename",
        "os.rmdir",
        "os.mkdir",
        "os.link",
        "os.symlink",
        "os.truncate",
        "os.chmod",
        "os.chown",
        "shutil.rmtree",
    }
)
_SYSTEM_DIRECTORIES = (
    "/usr",
    "/lib",
    "/lib64",
    "/etc",
    "/dev",
    "/sys",
    "/proc/self",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/opt",
)


class RefusedError(PermissionError):
    """The app did what compiling a topology does not need."""


def main() -> None:
    order = json.load(sys.stdin)
    result_fd = int(order["result_fd"])
    has_namespace = _confine(order)
    try:
        answer: dict[str, Any] = _compile(order)
    except BaseException as error:  # also SystemExit: a module may call sys.exit
        answer = _told(error)
    answer["network_namespace"] = has_namespace
    data = json.dumps(answer).encode()
    while data:
        data = data[os.write(result_fd, data) :]
    os._exit(0)  # threads that the app started do not keep it alive


def _confine(order: dict[str, Any]) -> bool:
    """Returns whether the kernel gave it a network of its own, with nothing in it."""
    libc = ctypes.CDLL(None, use_errno=True)
    prctl, unshare = getattr(libc, "prctl", None), getattr(libc, "unshare", None)
    if prctl is not None:
        prctl(_PR_SET_PDEATHSIG, 9, 0, 0, 0)
        prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    has_namespace = unshare is not None and unshare(_CLONE_NEWUSER | _CLONE_NEWNET) == 0
    limits = {
        resource.RLIMIT_AS: order["memory_bytes"],
        resource.RLIMIT_CPU: order["cpu_seconds"],
        resource.RLIMIT_FSIZE: 16 * 2**20,
        resource.RLIMIT_NOFILE: 256,
        resource.RLIMIT_CORE: 0,
    }
    for what, most in limits.items():
        try:
            resource.setrlimit(what, (most, most))
        except (ValueError, OSError):
            if sys.platform == "linux":  # elsewhere not every limit is known
                raise
    own = os.path.realpath(".")
    roots = (own, *order["import_path"], *filter(None, sys.path), sys.prefix, sys.base_prefix, *_SYSTEM_DIRECTORIES)
    readable = tuple(os.path.realpath(path) for path in roots)
    sys.addaudithook(_Guard(own, readable))
    return has_namespace


class _Guard:
    """Sees what Python code is about to do."""

    def __init__(self, own: str, readable: tuple[str, ...]) -> None:
        self._own = own
        self._readable = readable

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            self._check_open(*arguments)
        elif event in _REFUSED_EVENTS:
            raise RefusedError(f"{event} is not possible while a topology is compiled; do it when the app runs")
        elif event in _CHANGES and isinstance(arguments[0], str | bytes):
            self._check_path(os.fsdecode(arguments[0]), (self._own,), "changing")

    def _check_open(self, path: Any, mode: Any, flags: Any) -> None:
        if not isinstance(path, str | bytes):  # an open descriptor
            return
        writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        name = os.fsdecode(path)
        if writes and name not in ("/dev/null", "/dev/tty"):
            self._check_path(name, (self._own,), "writing")
        elif not writes:
            self._check_path(name, self._readable, "reading")

    def _check_path(self, path: str, allowed: tuple[str, ...], what: str) -> None:
        real = os.path.realpath(path)
        if not any(real == root or real.startswith(root.rstrip("/") + "/") for root in allowed):
            raise RefusedError(f"{what} {path} is not possible while a topology is compiled; do it when the app runs")


def _compile(order: dict[str, Any]) -> dict[str, str]:
    sys.path[:0] = order["import_path"]
    sys.dont_write_bytecode = True
    import importlib

    import streamfleet

    module_name, _, name = order["entrypoint"].partition(":")
    found = getattr(importlib.import_module(module_name), name, None)
    if found is None:
        raise LookupError(f"module {module_name} has no {name}")
    kinds = (streamfleet.Topology, streamfleet.StreamsBuilder)
    made = found if isinstance(found, kinds) else found()
    if isinstance(made, streamfleet.StreamsBuilder):
        made = made.build(streamfleet.StreamsConfig.from_mapping(order["settings"]))
    if not isinstance(made, streamfleet.Topology):
        raise TypeError(f"{order['entrypoint']} returned a {type(made).__name__}, not a Topology")
    return {"lock": made.to_json(), "svg": made.to_svg()}


def _told(error: BaseException) -> dict[str, Any]:
    """The app's own frames: what is before them is this module and the import system."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename != __file__ and not frame.filename.startswith("<frozen ")
    ]
    lines = "".join([*traceback.format_list(frames), *traceback.format_exception_only(error)]).splitlines()
    text = str(error).strip().splitlines()
    return {
        "error": type(error).__name__,
        "text": text[0][:500] if text else "",
        "traceback": "\n".join(lines[-TAIL_LINES:])[-4000:],
    }


if __name__ == "__main__":
    main()
