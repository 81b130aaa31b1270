"""Where the databases of an app's tasks are on disk: `<state.dir>/<application id>/<content id>_<partition>`.

One process owns an app's directory at a time; a lock file says so, and the operating system takes the lock back when the process
ends, however it ends. Within the process one StreamThread owns a task's directory at a time: during a hand-over between two threads
both may want it, and the second has to wait. A task's directory is named by the content of its SubTopology, not by its number:
numbers change when a topology does, and the state must be found again.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import threading
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import IO

from streamfleet.errors import StateStoreError, TaskLockedError

LOCK_NAME = ".lock"
ROOM_NAME = ".room"
ROOM_BYTES = 16 * 2**20
"""A write buffer of a database: with less, nothing that waits could be written."""
FORMER_SUFFIX = ".former"
GLOBAL_NAME = "global"
_TASK_DIRECTORY = re.compile(r"[0-9a-f]{16}_[0-9]+")
"""Not those of Java Kafka Streams, `0_1`: an app that was taken over may be handed back with the state it had."""


class StateDirectory:
    def __init__(self, root: Path, application_id: str) -> None:
        self._directory = root / application_id
        self._lock: IO[str] | None = None
        self._claimed: set[Path] = set()
        self._claiming = threading.Lock()

    def lock(self) -> None:
        """Take the directory for this process; it is made if it is not there."""
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            handle = (self._directory / LOCK_NAME).open("a+")
        except OSError as error:
            raise StateStoreError(
                f"the state directory {self._directory} cannot be used ({error.strerror})",
                hint="set state.dir to a directory this user may write to",
            ) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            handle.seek(0)
            owner = handle.read().strip() or "unknown"
            handle.close()
            raise StateStoreError(
                f"the state directory {self._directory} is in use by another process (pid {owner})",
                hint="give every worker on a machine a state.dir of its own, or stop the other one",
            ) from error
        self._lock = handle
        try:
            handle.truncate(0)
            handle.write(str(os.getpid()))
            handle.flush()
        except OSError as error:
            self.unlock()
            raise StateStoreError(
                f"the state directory {self._directory} cannot be written ({error.strerror})",
                hint="free some disk space (or inodes), or set state.dir to a directory on a larger disk",
            ) from error

    @property
    def path(self) -> Path:
        return self._directory

    def task_directory(self, content_id: str, partition: int) -> Path:
        return self._directory / f"{content_id}_{partition}"

    def claim_task(self, content_id: str, partition: int) -> Path:
        """The task's directory, for whoever asks first."""
        path = self.task_directory(content_id, partition)
        if not self._claim(path):
            raise TaskLockedError(
                f"the state of task {path.name} is open in another stream thread of this process",
                hint="it is taken over when that one has closed it",
            )
        return path

    def _claim(self, path: Path) -> bool:
        with self._claiming:
            if path in self._claimed:
                return False
            self._claimed.add(path)
            return True

    def give_up_task(self, path: Path) -> None:
        with self._claiming:
            self._claimed.discard(path)

    def tasks(self) -> list[tuple[str, int]]:
        """Content id and partition of every task that has a directory here."""
        names = [entry.name for entry in self._directory.iterdir() if entry.is_dir()]
        return [
            (name.rpartition("_")[0], int(name.rpartition("_")[2])) for name in names if _TASK_DIRECTORY.fullmatch(name)
        ]

    def emptied_global(self) -> Path:
        """Where the global stores of this process are kept, without those of its last run: their topics are read from the beginning
        at every start. Of the old rows, those that are gone from a topic would stay, and sums that a processor keeps would grow.
        """
        path = self._directory / GLOBAL_NAME
        _delete(path)
        return path

    def wipe_task(self, content_id: str, partition: int) -> None:
        """Delete a task's local state: it will be restored from its changelogs."""
        _delete(self.task_directory(content_id, partition))

    def set_task_aside(self, content_id: str, partition: int) -> None:
        """Like wipe_task, but what was there can still be read, until it is dropped: see `former_task`."""
        path = self.task_directory(content_id, partition)
        former = path.with_name(path.name + FORMER_SUFFIX)
        _delete(former)
        try:
            path.rename(former)
        except FileNotFoundError:
            return
        except OSError as error:
            raise _not_deleted(path, error) from error

    def former_task(self, content_id: str, partition: int) -> Path | None:
        """Where the state of a task is that was set aside."""
        path = self.task_directory(content_id, partition)
        former = path.with_name(path.name + FORMER_SUFFIX)
        return former if former.exists() else None

    def drop_former_task(self, content_id: str, partition: int) -> None:
        if (former := self.former_task(content_id, partition)) is not None:
            shutil.rmtree(former, ignore_errors=True)

    def clean(self, keep: Collection[Path], delay_ms: int, now_ms: int) -> list[str]:
        """Delete the state of tasks that are not among those to keep and were not written for that long; returns their names."""
        deleted = []
        for entry in self._directory.iterdir():
            task = _task_of(entry)
            if task is None or task in keep or not self._claim(task):
                continue
            try:  # it is ours: a StreamThread that wants it now has to wait, and finds it gone
                if entry.exists() and now_ms - _modified_ms(entry) >= delay_ms:
                    shutil.rmtree(entry, ignore_errors=True)
                    deleted.append(entry.name)
            finally:
                self.give_up_task(task)
        return deleted

    def drop_outdated(self, max_age_ms: int, now_ms: int) -> list[str]:
        """Before any task is opened: delete the state of tasks that was not used for longer than that; returns their names."""
        outdated = [
            entry
            for entry in self._directory.iterdir()
            if _task_of(entry) is not None and now_ms - _used_ms(entry) > max_age_ms
        ]
        for entry in outdated:
            _delete(entry)
        return sorted(entry.name for entry in outdated)

    def wipe(self) -> None:
        """Delete the local state of all tasks."""
        if not self._directory.exists():
            return
        for entry in self._directory.iterdir():
            if entry.is_dir():
                shutil.rmtree(entry)

    def has_room(self, size_bytes: int = ROOM_BYTES) -> bool:
        """Whether a file of that size can be written now. It is tried: quotas and limits of a process are in no statistics."""
        path = self._directory / ROOM_NAME
        try:
            path.write_bytes(bytes(size_bytes))
        except OSError:
            return False
        finally:
            with suppress(OSError):
                path.unlink()
        return True

    def unlock(self) -> None:
        if self._lock is not None:
            with suppress(OSError):  # what could not be written to it is tried once more on closing
                self._lock.close()
            self._lock = None


def _delete(directory: Path) -> None:
    """Rows that cannot be deleted are an error: they would be taken for those that belong there."""
    if not directory.exists():
        return
    try:
        shutil.rmtree(directory)
    except OSError as error:
        raise _not_deleted(directory, error) from error


def _not_deleted(directory: Path, error: OSError) -> StateStoreError:
    return StateStoreError(
        f"local state in {directory.parent.name}/{directory.name} cannot be deleted ({error.strerror or error})",
        hint="make state.dir writable for the user that runs this process, or remove that directory",
    )


def _task_of(entry: Path) -> Path | None:
    """The task's directory that this is, or was set aside from; None if it is no state of a task."""
    task = entry.with_name(entry.name.removesuffix(FORMER_SUFFIX))
    return task if entry.is_dir() and _TASK_DIRECTORY.fullmatch(task.name) else None


def _modified_ms(path: Path) -> int:
    return path.stat().st_mtime_ns // 1_000_000


def _used_ms(directory: Path) -> int:
    """When anything in it was written last: a database that is only appended to does not touch its directory."""
    return max(_modified_ms(path) for path in (directory, *directory.iterdir()))
