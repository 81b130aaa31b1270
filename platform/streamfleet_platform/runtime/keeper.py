"""Keeps one slot's worker running: a small process of its own, started by local.py, that outlives the server.

It starts the worker, writes its output to log files of bounded size with secrets masked, starts it again with growing pauses
when it ends by itself, and ends with it when it is told to stop. So a crash is dealt with while the server is away, and its exit
code and last words are known to the next server. The slot's directory is all they share:

    order.json   what is wanted, written by local.py      record.json  how it is, written by the keeper
    slot.lock    held by the keeper and its worker from before they exist until both are gone
    worker.json  who the worker is, written by itself (worker_start.py)

Runs as a script, in Python's isolated mode and without site packages, so it takes a few MB: it imports the standard library
only. local.py imports it for the files they share.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any

ORDER, RECORD, WORKER, LOCK = "order.json", "record.json", "worker.json", "slot.lock"
LOG = "worker.log"
SECRET_PREFIX = "STREAMFLEET_SECRET_"  # noqa: S105  (of names of variables)
MISUSED = 2
"""The exit code of a worker whose command or configuration is wrong: starting it again changes nothing."""
MASK = b"***"
_WORKER_START = Path(__file__).with_name("worker_start.py")
_WAKE_SECONDS = 1.0
"""How often it looks around without being woken: at its order, and at the worker's memory."""
_LONGEST_LINE = 64 * 1024
_LONGEST_REASON = 500
_SHORTEST_SECRET = 3


# what keeper and runtime share


def write_json(path: Path, content: dict[str, Any]) -> None:
    """All of it or nothing, also when the process is killed in between."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def read_json(path: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def started_at(pid: int) -> str | None:
    """When a process began, in words of the system that two processes with the same number never share; None: it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None if Path("/proc/self/stat").exists() else _started_by_ps(pid)
    fields = stat[stat.rindex(b")") + 2 :].split()
    return None if fields[0] in (b"Z", b"X") else fields[19].decode()


def _started_by_ps(pid: int) -> str | None:
    """Where there is no /proc."""
    command = ["/bin/ps", "-o", "stat=,lstart=", "-p", str(pid)]
    told = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()  # noqa: S603
    state, _, began = told.partition(" ")
    return began.strip() if began and not state.startswith("Z") else None


def identity(pid: int) -> dict[str, Any]:
    return {"pid": pid, "started": started_at(pid)}


def is_same(who: dict[str, Any] | None) -> bool:
    """Whether this process is still there, and no other one with its number."""
    return who is not None and who["started"] is not None and started_at(who["pid"]) == who["started"]


def send_signal(who: dict[str, Any] | None, number: int, *, group: bool = False) -> bool:
    """To this process and no other. False: it is gone."""
    if who is None or not is_same(who):
        return False
    try:
        if hasattr(os, "pidfd_open"):
            descriptor = os.pidfd_open(who["pid"])
            try:
                if not is_same(who):  # it ended in between, and its number was given away
                    return False
                signal.pidfd_send_signal(descriptor, number)
            finally:
                os.close(descriptor)
        else:
            os.kill(who["pid"], number)
        if group:  # a leader's number is not given away while its group has members
            os.killpg(who["pid"], number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


# the keeper itself


class Log:
    """What the worker writes, line by line, in files of bounded size: worker.log, and older ones with numbers."""

    def __init__(self, directory: Path, max_bytes: int, files: int, secrets: list[bytes]) -> None:
        self._directory = directory
        self._max_bytes = max_bytes
        self._files = files
        self._secrets = sorted((secret for secret in secrets if len(secret) >= _SHORTEST_SECRET), key=len, reverse=True)
        self._rest = b""
        self._file = self._open()
        self.last_lines: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Only whole lines are written: a secret may lie across two reads."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _LONGEST_LINE:
            lines, self._rest = [*lines, self._rest], b""
        for line in lines:
            self._write_line(line)

    def flush(self) -> None:
        """The worker has ended, perhaps within a line."""
        if self._rest:
            self._write_line(self._rest)
            self._rest = b""

    def close(self) -> None:
        self.flush()
        self._file.close()

    def _write_line(self, line: bytes) -> None:
        for secret in self._secrets:
            line = line.replace(secret, MASK)
        if self._file.tell() + len(line) > self._max_bytes:
            self._rotate()
        with suppress(OSError):  # a full disk costs lines of the log, not the worker
            self._file.write(line + b"\n")
        if line.strip():
            self.last_lines = [*self.last_lines[-19:], line]

    def _open(self) -> FileIO:
        file = FileIO(os.open(self._directory / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "w")
        file.seek(0, os.SEEK_END)
        return file

    def _rotate(self) -> None:
        self._file.close()
        for number in range(self._files - 1, 0, -1):
            older = self._directory / (LOG if number == 1 else f"{LOG}.{number - 1}")
            if older.exists():
                older.replace(self._directory / f"{LOG}.{number}")
        self._file = self._open()

    def last_words(self) -> str:
        """What a worker that failed says last: its sentence `error: ...`, or the last line there is."""
        lines = [line.decode(errors="replace").strip() for line in self.last_lines]
        sentences = [line for line in lines if line.startswith("error: ")]
        return (sentences or lines or [""])[-1][:_LONGEST_REASON]


class Keeper:
    """One slot. Its main loop waits for output, signals and time."""

    def __init__(self, slot: Path, lock_fd: int) -> None:
        self._slot = slot
        self._lock_fd = lock_fd
        self._order = read_json(slot / ORDER) or {}
        policy = self._order.get("policy", {})
        self._first_pause, self._longest_pause = float(policy["first_pause"]), float(policy["longest_pause"])
        self._quick, self._too_many = float(policy["quick_seconds"]), int(policy["quick_failures"])
        secrets = [os.fsencode(value) for name, value in os.environ.items() if name.startswith(SECRET_PREFIX)]
        self._log = Log(slot, int(policy["log_bytes"]), int(policy["log_files"]), secrets)
        self._record: dict[str, Any] = {"restarts": 0, "quick_failures": 0, "next_start": None}
        self._selector = selectors.DefaultSelector()
        self._kill_at: float | None = None
        self._killed_why: str | None = None
        self._look_at = 0.0
        """When to look at the order and at the worker's memory again."""

    def run(self) -> None:
        former = read_json(self._slot / RECORD)
        if former is not None and former.get("order") == self._order["id"]:  # its keeper was killed: go on counting
            self._record |= {name: former[name] for name in ("restarts", "quick_failures", "next_start")}
        wake_fd, notify_fd = os.pipe()
        os.set_blocking(notify_fd, False)
        os.set_blocking(wake_fd, False)
        signal.set_wakeup_fd(notify_fd)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        self._selector.register(wake_fd, selectors.EVENT_READ)
        while not self._is_stopped():
            self._pause()
            if self._is_stopped():
                break
            code, seconds = self._run_worker()
            if self._is_stopped():
                self._write("stopped", exit_code=code, reason=self._killed_why)
                return
            if not self._note_end(code, seconds):
                return
        self._write("stopped")

    def _is_stopped(self) -> bool:
        order = read_json(self._slot / ORDER)
        self._order = order or self._order
        return order is None or order["desired"] != "running"

    def _pause(self) -> None:
        """Until the next start is due."""
        while self._record["next_start"] is not None and time.time() < self._record["next_start"]:
            self._wait(self._record["next_start"] - time.time())
            if self._is_stopped():
                return
        self._record["next_start"] = None

    def _wait(self, seconds: float) -> None:
        for key, _ in self._selector.select(max(0.0, min(seconds, _WAKE_SECONDS))):
            if key.data is None:
                os.read(key.fd, 512)
                self._look_at = 0.0
            elif data := os.read(key.fd, 65_536):
                self._log.write(data)
            else:
                self._selector.unregister(key.fd)

    # one worker

    def _run_worker(self) -> tuple[int, float]:
        self._kill_at = self._killed_why = None
        self._log.last_lines = []
        (self._slot / WORKER).unlink(missing_ok=True)
        began = time.monotonic()
        process = self._spawn()
        assert process.stdout is not None
        who = identity(process.pid)
        self._selector.register(process.stdout.fileno(), selectors.EVENT_READ, "output")
        in_loop = self._record["quick_failures"] >= self._too_many
        self._write("crash_loop" if in_loop else "running", worker=who, started=time.time())
        while process.poll() is None:
            self._wait(_WAKE_SECONDS)
            self._look_after(process, who)
            if self._record["quick_failures"] and time.monotonic() - began > self._quick:
                self._record["quick_failures"] = 0
                self._write("running", worker=who, started=self._record["started"])
        self._drain_output(process)
        send_signal(who, signal.SIGKILL, group=True)  # what it may have started
        return process.returncode, time.monotonic() - began

    def _spawn(self) -> subprocess.Popen[bytes]:
        begin = [sys.executable, "-I", "-B", "-u", "-X", "utf8", str(_WORKER_START), str(self._slot), str(os.getpid())]
        return subprocess.Popen(  # noqa: S603  (an argument list, no shell)
            [*begin, *self._order["arguments"]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self._order["code"],
            pass_fds=(self._lock_fd,),
            start_new_session=True,
        )

    def _look_after(self, process: subprocess.Popen[bytes], who: dict[str, Any]) -> None:
        if time.monotonic() < self._look_at:  # woken by output
            return
        self._look_at = time.monotonic() + _WAKE_SECONDS
        if self._kill_at is None and self._is_stopped():
            grace = float(self._order.get("grace", 0.0))
            self._kill_at = time.monotonic() + grace
            self._write("stopping", worker=who, started=self._record["started"])
            if grace > 0:
                process.send_signal(signal.SIGTERM)
        if self._kill_at is not None and (self._order.get("grace") == 0 or time.monotonic() >= self._kill_at):
            self._kill(
                who, "killed: asked to" if self._order.get("grace") == 0 else "killed: its grace period was over"
            )
        if (used := _resident_bytes(process.pid)) > self._order["memory_bytes"]:
            self._kill(who, f"killed: it used {used >> 20} MiB, and may use {self._order['memory_bytes'] >> 20} MiB")

    def _kill(self, who: dict[str, Any], why: str) -> None:
        self._killed_why = self._killed_why or why
        send_signal(who, signal.SIGKILL, group=True)

    def _drain_output(self, process: subprocess.Popen[bytes]) -> None:
        """What is in the pipe. Something that the worker started may hold it open: its end is not waited for."""
        assert process.stdout is not None
        fd = process.stdout.fileno()
        if fd in self._selector.get_map():
            self._selector.unregister(fd)
            os.set_blocking(fd, False)
            try:
                while data := os.read(fd, 65_536):
                    self._log.write(data)
            except BlockingIOError:
                pass
        process.stdout.close()
        self._log.flush()

    def _note_end(self, code: int, seconds: float) -> bool:
        """Returns whether to start it again."""
        reason = f"{self._killed_why or _end_text(code)}: {self._log.last_words()}".removesuffix(": ")
        if code == MISUSED:
            self._write("crash_loop", exit_code=code, reason=f"{reason}; it is not started again before it was stopped")
            return False
        self._record["quick_failures"] = self._record["quick_failures"] + 1 if seconds <= self._quick else 1
        self._record["restarts"] += 1
        failures = self._record["quick_failures"]
        pause = min(self._longest_pause, self._first_pause * 2 ** min(failures - 1, 30))
        self._record["next_start"] = time.time() + pause
        phase = "crash_loop" if failures >= self._too_many else "back_off"
        if phase == "crash_loop":
            reason = f"ended {failures} times soon after its start; last: {reason}"
        self._write(phase, exit_code=code, reason=reason)
        return True

    def _write(self, phase: str, **more: Any) -> None:
        kept = {
            name: self._record.get(name)
            for name in ("restarts", "quick_failures", "next_start", "started", "exit_code")
        }
        if phase == "crash_loop" and "reason" not in more:
            kept["reason"] = self._record.get("reason")
        self._record = {**kept, "order": self._order["id"], "keeper": identity(os.getpid()), "phase": phase, **more}
        with suppress(OSError):  # a full disk: the record is older than the truth, and the worker goes on
            write_json(self._slot / RECORD, self._record)


def _end_text(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"ended by {signal.Signals(-code).name}"


def _resident_bytes(pid: int) -> int:
    """0 where the system does not say: there is no limit then."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


if __name__ == "__main__":
    Keeper(Path(sys.argv[1]), lock_fd=int(sys.argv[2])).run()
