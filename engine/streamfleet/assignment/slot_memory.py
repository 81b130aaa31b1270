"""SlotMemory: what a thread of this process had last, in a small file of its state directory.

Used by streams_protocol.py. When all processes of an app stop and start again nobody has anything, and everybody who kept a
copy is as good as who ran the task; this is how each gets its own tasks back. It is a courtesy: a file that cannot be read or
written costs moves, nothing else, so there is no error.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import structlog

from streamfleet.assignment.packed_tasks import PackedTasks, pack, unpack
from streamfleet.assignment.snapshot import TaskKey

log = structlog.get_logger(__name__)


class SlotTasks(msgspec.Struct, frozen=True):
    """Tasks of one thread."""

    active: frozenset[TaskKey] = frozenset()
    standby: frozenset[TaskKey] = frozenset()


class _File(msgspec.Struct, frozen=True):
    active: PackedTasks = {}
    standby: PackedTasks = {}


class SlotMemory:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._written: SlotTasks | None = None

    def load(self) -> SlotTasks:
        try:
            read = msgspec.json.decode(self._path.read_bytes(), type=_File)
        except FileNotFoundError:
            return SlotTasks()
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            log.warning("what this process had last is not known", file=str(self._path), why=str(error))
            return SlotTasks()
        return SlotTasks(frozenset(unpack(read.active)), frozenset(unpack(read.standby)))

    def save(self, tasks: SlotTasks) -> None:
        if tasks == self._written:
            return
        aside = self._path.with_name(f"{self._path.name}.new")
        try:
            aside.write_bytes(msgspec.json.encode(_File(pack(tasks.active), pack(tasks.standby))))
            aside.replace(self._path)
        except OSError as error:
            log.warning("what this process has could not be noted", file=str(self._path), why=str(error))
        else:
            self._written = tasks
