"""Runs in a child process: gives records to an app's topology, in the engine's test driver, and writes what its store then holds.

Started by own_topology.py as a script, in Python's isolated mode, with an empty environment; the order comes on standard input, the
answer goes into `answer.json` beside it. It is the code that workers of the app run anyway, as the same user; what it must not do
here is to act: it has no network where the kernel grants a namespace without one, and its memory, time and files are limited.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import resource
import sys
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38


def main() -> None:
    order = json.load(sys.stdin)
    _confine(order)
    try:
        answer = _computed(order)
    except BaseException as error:  # also SystemExit: a module may call sys.exit
        text = str(error).strip().splitlines()
        answer = {"told": f"{type(error).__name__}: {text[0][:500] if text else ''}"}
    Path("answer.json").write_text(json.dumps(answer), "utf-8")
    os._exit(0)  # threads that the app started do not keep it alive


def _confine(order: dict[str, Any]) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if sys.platform == "linux":
        libc.prctl(_PR_SET_PDEATHSIG, 9, 0, 0, 0)
        libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET)
    limits = {
        resource.RLIMIT_AS: order["memory_bytes"],
        resource.RLIMIT_CPU: order["cpu_seconds"],
        resource.RLIMIT_FSIZE: 1 << 30,
        resource.RLIMIT_CORE: 0,
    }
    for what, most in limits.items():
        try:
            resource.setrlimit(what, (most, most))
        except (ValueError, OSError):
            if sys.platform == "linux":  # elsewhere not every limit is known
                raise


def _computed(order: dict[str, Any]) -> dict[str, Any]:
    sys.path[:0] = order["import_path"]
    import streamfleet
    from streamfleet.testing import TopologyTestDriver

    config = streamfleet.StreamsConfig.from_mapping(order["settings"])
    topology = _topology(order["entrypoint"], config)
    parts = topology.processor_topology(config.application_id)
    if parts.global_stores:
        return {"told": "it reads a global table, which the table of the bootstrap has not"}
    changelog = next(entry.changelog for entry in parts.stores if entry.name == order["store"])
    rows: dict[bytes, tuple[bytes, int]] = {}
    with TopologyTestDriver(topology, config) as driver:
        for key, value, timestamp, headers in order["records"]:
            known = tuple((name, _bytes(data)) for name, data in headers)
            driver.pipe_raw(order["topic"], _bytes(key), _bytes(value), timestamp, known)
            for record in driver.drain():
                if record.topic == changelog:
                    _take(rows, record)
    return {"rows": [(b64encode(key).decode(), b64encode(value).decode(), at) for key, (value, at) in rows.items()]}


def _take(rows: dict[bytes, tuple[bytes, int]], record: Any) -> None:
    if record.value is None:
        rows.pop(record.key, None)
    else:
        rows[record.key] = (record.value, record.timestamp)


def _topology(entrypoint: str, config: Any) -> Any:
    """As a worker makes it of what the entry point is: a topology, a builder, or a function that returns one."""
    import streamfleet

    module_name, _, name = entrypoint.partition(":")
    found = getattr(importlib.import_module(module_name), name)
    made = found if isinstance(found, streamfleet.Topology | streamfleet.StreamsBuilder) else found()
    return made.build(config) if isinstance(made, streamfleet.StreamsBuilder) else made


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)


if __name__ == "__main__":
    main()
