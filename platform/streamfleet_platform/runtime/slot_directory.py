"""The files of one slot of the local runtime, and what they say together. Read and written by local.py; see keeper.py for who
writes which.

The lock decides whether anybody is there: the keeper gets it from the process that starts it, before it exists, and hands it to
its worker, so it is free when, and only when, none of them is left. Numbers of processes are only used to send signals, together
with the time they began.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from streamfleet_platform.runtime import keeper
from streamfleet_platform.runtime.api import WorkerPhase, WorkerState

_LOCK_PATIENCE_SECONDS = 2.0
"""For those who only look: they hold the lock for a moment."""
_TAIL_BYTES = 256


class SlotDirectory:
    def __init__(self, path: Path, app: str, slot: int) -> None:
        self.path = path
        self.app = app
        self.slot = slot

    @property
    def state(self) -> Path:
        return self.path / "state"

    @property
    def config_file(self) -> Path:
        return self.path / "config.yaml"

    @property
    def token_file(self) -> Path:
        return self.path / "control-token"

    @property
    def order(self) -> dict[str, Any] | None:
        return keeper.read_json(self.path / keeper.ORDER)

    def write_order(self, order: dict[str, Any]) -> None:
        keeper.write_json(self.path / keeper.ORDER, order)

    def make(self) -> None:
        """The directories, and the word that the worker's door wants to see: both stay as long as the slot."""
        for path in (self.path, self.state, self.path / "tmp"):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self.token_file.exists():
            write_text(self.token_file, secrets.token_urlsafe(32))

    # the lock

    @contextmanager
    def locked(self) -> Iterator[int | None]:
        """Its descriptor; None: somebody is there. A process that inherits it holds the lock after this block, too."""
        try:
            descriptor = os.open(self.path / keeper.LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            yield None
            return
        try:
            yield descriptor if self._take(descriptor) else None
        finally:
            os.close(descriptor)

    def _take(self, descriptor: int) -> bool:
        deadline = time.monotonic() + _LOCK_PATIENCE_SECONDS
        while True:
            with suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            if time.monotonic() > deadline or self.keeper_or_worker() is not None:
                return False
            time.sleep(0.01)

    def is_taken(self) -> bool:
        """Whether a keeper or a worker is there."""
        try:
            descriptor = os.open(self.path / keeper.LOCK, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    # who is there

    def keeper(self) -> dict[str, Any] | None:
        record = keeper.read_json(self.path / keeper.RECORD)
        who = None if record is None else record["keeper"]
        return who if keeper.is_same(who) else None

    def worker(self) -> dict[str, Any] | None:
        """By its own word. While the lock is taken and no keeper is left, the worker is who has it, so its number is its own."""
        told = keeper.read_json(self.path / keeper.WORKER)
        who = None if told is None else keeper.identity(int(told["pid"]))
        return who if who is not None and who["started"] is not None and self.is_taken() else None

    def keeper_or_worker(self) -> dict[str, Any] | None:
        return self.keeper() or self.worker()

    # what it says

    def worker_state(self, *, is_taken: bool | None = None) -> WorkerState | None:
        """None: nothing was ever started here. Who has the lock itself says whether it was taken."""
        order = self.order
        if order is None:
            return None
        is_taken = self.is_taken() if is_taken is None else is_taken
        record = keeper.read_json(self.path / keeper.RECORD)
        if record is None or record["order"] != order["id"]:
            record = {}
        phase, reason = _phase(order, record, is_taken=is_taken, is_kept=is_taken and self.keeper() is not None)
        is_up = is_taken and record.get("worker") is not None
        return WorkerState(
            app=self.app,
            slot=self.slot,
            phase=phase,
            digest=order["digest"],
            revision=order["revision"],
            reason=reason,
            code=Path(order["code"]),
            url=f"http://127.0.0.1:{order['port']}",
            token=self._token(),
            pid=record["worker"]["pid"] if is_up else None,
            restarts=record.get("restarts", 0),
            exit_code=record.get("exit_code"),
            started_at=_moment(record.get("started")),
            next_start_at=_moment(record.get("next_start")) if is_taken else None,
        )

    def _token(self) -> str | None:
        try:
            return self.token_file.read_text()
        except FileNotFoundError:
            return None

    def log_tail(self, lines: int, files: int) -> str:
        """From the newest file backwards, as far as is needed."""
        found: list[str] = []
        for name in (keeper.LOG, *(f"{keeper.LOG}.{number}" for number in range(1, files))):
            with suppress(FileNotFoundError):
                found = _last_lines(self.path / name, lines - len(found)) + found
            if len(found) >= lines:
                break
        return "\n".join(found) + ("\n" if found else "")


def _phase(
    order: dict[str, Any], record: dict[str, Any], *, is_taken: bool, is_kept: bool
) -> tuple[WorkerPhase, str | None]:
    if order["desired"] != "running":
        return (WorkerPhase.STOPPING if is_taken else WorkerPhase.STOPPED), record.get("reason")
    if is_taken and not record:
        return WorkerPhase.STARTING, None
    if is_taken and is_kept:
        return WorkerPhase(record["phase"]), record.get("reason")
    if record.get("phase") == "crash_loop" and not is_taken and record.get("exit_code") == keeper.MISUSED:
        return WorkerPhase.CRASH_LOOP, record["reason"]
    if is_taken:
        return WorkerPhase.STOPPING, "its keeper is gone; the worker ends"
    return WorkerPhase.LOST, "its process is gone and nobody started it again; start it"


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def _last_lines(path: Path, lines: int) -> list[str]:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        wanted = _TAIL_BYTES
        while True:
            wanted = min(size, wanted * 4)
            file.seek(size - wanted)
            data = file.read(wanted)
            if wanted == size or data.count(b"\n") > lines:
                return data.decode(errors="replace").splitlines()[-lines:] if lines > 0 else []


def write_text(path: Path, text: str) -> None:
    """For its owner only, all of it or nothing."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    partial.replace(path)
