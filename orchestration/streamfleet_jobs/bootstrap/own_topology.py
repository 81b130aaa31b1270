"""The sample's keys, computed by the app's own topology from its input. Called by verification's last step in job.py.

A declaration says how a table becomes a store; whether the app does the same, only the app knows: a filter, another key, another
value. The records that the table says these keys have are read from the topic and given to the topology in a child process
(topology_child.py); the changelog it writes must be, byte for byte, what was computed.

What cannot be looked at (records that the topic has deleted, code that is not on this machine) is said, and is no proof.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamfleet as sf
from streamfleet_jobs.bootstrap.input_records import InputRecord
from streamfleet_jobs.bootstrap.recomputation import Place, places_of
from streamfleet_jobs.bootstrap.spec import BootstrapSpec
from streamfleet_jobs.errors import RefusedError

Rows = Mapping[bytes, tuple[bytes, int]]
"""Value and timestamp by key."""
Read = Callable[[Sequence[Place]], Sequence[InputRecord]]

MAX_RECORDS = 5_000
"""They are read one by one, wherever in the topic they are."""
_CHILD = Path(__file__).with_name("topology_child.py")
_SECONDS, _MEMORY_BYTES = 120.0, 4 << 30


@dataclass(frozen=True)
class Looked:
    """At how much of the sample, and why not at all of it."""

    keys: int = 0
    records: int = 0
    told: str = ""


class _NotRunError(Exception):
    """The topology gave no answer. The text says why."""


def check_by_topology(spec: BootstrapSpec, wanted: Rows, starts: Mapping[int, int], read: Read) -> Looked:
    """`starts`: the first offsets that the input topic still has, by partition."""
    code = spec.app.code
    if code is None:
        return Looked(told="the spec names no code")
    if not code.directory.is_dir():
        return Looked(told=f"the app's code is not on this machine: {code.directory}")
    chosen, told = _choose(places_of(spec, wanted), starts)
    if not chosen:
        return Looked(told=told)
    records = read(sorted(place for places in chosen.values() for place in places))
    try:
        found = _computed(spec, records)
    except _NotRunError as error:
        return Looked(told=str(error))
    for key in chosen:
        if found.get(key) != wanted[key]:
            raise _differs(f"the app's topology computes {found.get(key)} for a key that was computed as {wanted[key]}")
    strange = found.keys() - chosen.keys()
    if strange:
        raise _differs(f"the app's topology makes {len(strange)} more keys of the records of {len(chosen)}")
    return Looked(len(chosen), len(records), told)


def _differs(fact: str) -> RefusedError:
    return RefusedError(
        fact,
        hint="state.bootstraps does not say all that the app does to its records: correct it, or reset the app instead",
    )


def _choose(
    places: Mapping[bytes, Sequence[Place]], starts: Mapping[int, int]
) -> tuple[dict[bytes, Sequence[Place]], str]:
    """Keys whose records are all there, as long as they are not too many together."""
    there = {key: at for key, at in places.items() if all(offset >= starts[partition] for partition, offset in at)}
    chosen: dict[bytes, Sequence[Place]] = {}
    left = MAX_RECORDS
    for key, at in there.items():
        if len(at) <= left:
            chosen[key] = at
            left -= len(at)
    gone, many = len(places) - len(there), len(there) - len(chosen)
    told = [
        f"the topic no longer has all records of {gone} keys" if gone else "",
        f"{many} keys have too many records" if many else "",
    ]
    return chosen, "; ".join(filter(None, told))


def _computed(spec: BootstrapSpec, records: Sequence[InputRecord]) -> dict[bytes, tuple[bytes, int]]:
    """The store, by the changelog that the app's topology writes."""
    code = spec.app.code
    assert code is not None
    order = {
        "entrypoint": code.entrypoint,
        "import_path": [str(code.directory.resolve()), str(Path(sf.__file__).resolve().parents[1])],
        "settings": {"application.id": spec.app.application_id, **code.settings},
        "store": spec.store.name,
        "topic": spec.input.topic,
        "records": [
            (_text(record.key), _text(record.value), record.timestamp, [(name, _text(v)) for name, v in record.headers])
            for record in records
        ],
        "memory_bytes": _MEMORY_BYTES,
        "cpu_seconds": int(_SECONDS),
    }
    with tempfile.TemporaryDirectory(prefix="streamfleet-sample-") as directory:
        answer = _answer(order, Path(directory))
    if "told" in answer:
        raise _NotRunError(f"the app's topology could not be run on the sample: {answer['told']}")
    return {b64decode(key): (b64decode(value), at) for key, value, at in answer["rows"]}


def _answer(order: Mapping[str, Any], directory: Path) -> dict[str, Any]:
    """The child gets no environment, so no secrets, and stands in a directory of its own."""
    process = subprocess.Popen(  # noqa: S603 - an argument list, no shell
        [sys.executable, "-I", "-B", "-X", "utf8", str(_CHILD)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd=directory,
        env={"LC_ALL": "C.UTF-8", "HOME": str(directory), "TMPDIR": str(directory)},
        start_new_session=True,
    )
    try:
        _, said = process.communicate(json.dumps(order).encode(), timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        raise _NotRunError(f"the app's topology took longer than {_SECONDS:g} s for the sample") from None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)  # what it may have started is in its session
            process.wait()
    try:
        found: dict[str, Any] = json.loads((directory / "answer.json").read_bytes())
    except (OSError, ValueError):
        tail = said.decode(errors="replace").strip().splitlines()[-1:]
        why = f"its process ended with exit code {process.returncode}: {''.join(tail)}"
        raise _NotRunError(f"the app's topology could not be run on the sample: {why}") from None
    return found


def _text(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode()
