"""LocalRuntime: workers as processes of this machine, one per slot, below one directory.

    ROOT/fence.json                  the newest fencing token
    ROOT/slots/APP/SLOT/             a slot: slot_directory.py says what is in it

It remembers nothing: whatever it says it has read from these directories a moment ago, so a new server finds every worker that
an old one started, and there is nothing to adopt. start() takes the slot's lock, writes the order, and starts a keeper that
inherits the lock. Killed before that, nobody is there and the slot is LOST; killed after it, the keeper is there. There is no
moment in which a second worker could start or one could be overlooked.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from zlib import crc32

import yaml

import streamfleet
from streamfleet_platform.errors import ConflictError, InvalidRequestError, NotFoundError, TransientError
from streamfleet_platform.model.names import is_name
from streamfleet_platform.runtime import keeper
from streamfleet_platform.runtime.api import DEFAULT_GRACE_SECONDS, WorkerPhase, WorkerSpec, WorkerState
from streamfleet_platform.runtime.fence import Fence
from streamfleet_platform.runtime.secrets import SecretSource, resolved
from streamfleet_platform.runtime.slot_directory import SlotDirectory, write_text
from streamfleet_platform.runtime.specification import slot_settings

_KEEPER = Path(keeper.__file__)
_PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ")
"""What a worker gets of the server's environment. Whatever makes an interpreter or a linker load code is not among it."""
_TASK = re.compile(r"[0-9a-f]{16}_[0-9]+")
_FORCE_SECONDS = 5.0
"""How long after the end of a grace period a keeper that has not acted is taken for stuck."""


@dataclass(frozen=True)
class RestartPolicy:
    """How a worker that ends by itself is started again."""

    first_pause: float = 0.5
    """Seconds; doubled with every quick failure."""
    longest_pause: float = 10.0
    quick_seconds: float = 30.0
    """A worker that ran for longer is not failing at its start."""
    quick_failures: int = 5
    """After so many in a row it is in a crash loop."""
    log_bytes: int = 10 * 2**20
    """Of one file."""
    log_files: int = 3


@dataclass(frozen=True)
class LocalSettings:
    """Where and how processes are kept."""

    root: Path
    secret_directory: Path | None = None
    secret_variables: Callable[[], Collection[str]] = tuple
    """Of the server's environment, that apps may name: `secrets.env` of fleet.yaml, asked whenever one is read."""
    ports: range = range(21_000, 27_000)
    """For the doors. Below those that the system gives to outgoing connections."""
    restarts: RestartPolicy = field(default_factory=RestartPolicy)
    worker: str = "streamfleet.cli:main"
    """module:function that a worker calls; its arguments are those of `streamfleet run`."""
    log_level: str = "info"


def _no_step(_name: str) -> None:
    """What tests replace to be killed between two steps."""


class LocalRuntime:
    """A Runtime. Safe to use from several threads and by several servers."""

    def __init__(
        self,
        settings: LocalSettings,
        *,
        environment: Mapping[str, str] | None = None,
        on_step: Callable[[str], None] = _no_step,
    ) -> None:
        self._settings = settings
        self._slots = settings.root.resolve() / "slots"
        self._environment = dict(os.environ if environment is None else environment)
        self._secrets = SecretSource(self._environment, settings.secret_variables, settings.secret_directory)
        self._fence = Fence(settings.root.resolve())
        self._on_step = on_step

    # what there is

    def newest_token(self) -> int:
        return self._fence.newest()

    def list(self, app: str | None = None) -> Sequence[WorkerState]:
        _reap()
        return [state for slot in self._all(app) if (state := slot.worker_state()) is not None]

    def _all(self, app: str | None = None) -> Sequence[SlotDirectory]:
        apps = sorted(path.name for path in _entries(self._slots)) if app is None else [app]
        return [
            self._slot(name, slot)
            for name in apps
            for slot in sorted(int(path.name) for path in _entries(self._slots / name) if path.name.isdecimal())
        ]

    def describe(self, app: str, slot: int) -> WorkerState:
        state = self._slot(app, slot).worker_state()
        if state is None:
            raise NotFoundError(f"app {app} has no slot {slot}", hint="list the slots")
        return state

    def logs(self, app: str, slot: int, lines: int) -> str:
        self.describe(app, slot)
        return self._slot(app, slot).log_tail(lines, self._settings.restarts.log_files)

    def state_bytes(self, app: str, slot: int) -> int | None:
        return sum(_file_bytes(path) for path in self._slot(app, slot).state.rglob("*"))

    def task_bytes(self, app: str, slot: int) -> Mapping[str, int]:
        """As the engine lays them out: state/APPLICATION-ID/TASK."""
        tasks = [task for owner in _entries(self._slot(app, slot).state) for task in _entries(owner)]
        return {task.name: sum(map(_file_bytes, task.rglob("*"))) for task in tasks if _TASK.fullmatch(task.name)}

    # start

    def start(self, spec: WorkerSpec, *, token: int) -> WorkerState:
        slot = self._slot(spec.app, spec.slot)
        if not spec.code.is_dir():
            raise NotFoundError(
                f"the code of revision {spec.revision[:20]} is not at {spec.code}", hint="apply the definitions again"
            )
        settings, variables = resolved(slot_settings(spec), spec.secrets, self._secrets)
        with self._fence.passed(token):
            self._on_step("fenced")
            slot.make()
            with slot.locked() as lock_fd:
                self._on_step("locked")
                former = slot.worker_state(is_taken=lock_fd is None)
                if former is not None and former.digest == spec.digest and former.phase is not WorkerPhase.STOPPED:
                    if former.phase is WorkerPhase.STOPPING:
                        raise TransientError(f"slot {spec.slot} of app {spec.app} is stopping", hint="start it then")
                    if lock_fd is None or former.phase is WorkerPhase.CRASH_LOOP:
                        return former
                if lock_fd is None:
                    raise self._occupied(spec, former)
                write_text(slot.config_file, yaml.safe_dump(settings, sort_keys=True))
                self._on_step("prepared")
                slot.write_order(self._order(spec, slot, former))
                self._on_step("ordered")
                self._spawn(slot, lock_fd, variables)
                self._on_step("spawned")
        return self.describe(spec.app, spec.slot)

    def _occupied(self, spec: WorkerSpec, former: WorkerState | None) -> ConflictError | TransientError:
        where = f"slot {spec.slot} of app {spec.app}"
        if former is None or former.phase is WorkerPhase.STOPPING:
            return TransientError(f"{where} is stopping", hint="start it then")
        return ConflictError(f"{where} runs revision {former.revision} with other settings", hint="stop it first")

    def _order(self, spec: WorkerSpec, slot: SlotDirectory, former: WorkerState | None) -> dict[str, object]:
        before = slot.order or {}
        # A worker that was lost goes on: what was counted before still counts.
        goes_on = former is not None and former.phase is WorkerPhase.LOST and former.digest == spec.digest
        port = self._port(slot, before.get("port"))
        engine = Path(streamfleet.__file__).resolve().parents[1]
        code = str(spec.code.resolve())
        return {
            "id": before["id"] if goes_on else uuid.uuid4().hex,
            "desired": "running",
            "digest": spec.digest,
            "revision": spec.revision,
            "port": port,
            "memory_bytes": spec.memory_bytes,
            "code": code,
            "arguments": [
                *(code, str(engine), "--", self._settings.worker, "run", spec.entrypoint),
                *("--config", str(slot.config_file), "--state-dir", str(slot.state)),
                *("--http", f"127.0.0.1:{port}", "--control-token-file", str(slot.token_file)),
                *("--log-level", self._settings.log_level),
            ],
            "policy": asdict(self._settings.restarts),
        }

    def _port(self, slot: SlotDirectory, former: int | None) -> int:
        """The one it had, as long as nobody else took it."""
        if former is not None and _is_free(former):
            return former
        taken = {order["port"] for other in self._all() if (order := other.order) is not None}
        ports = self._settings.ports
        first = crc32(str(self._slots).encode()) % len(ports)  # several runtimes on a machine begin at different places
        for offset in range(len(ports)):
            port = ports[(first + offset) % len(ports)]
            if port not in taken and _is_free(port):
                return port
        raise TransientError(f"no free port from {ports[0]} to {ports[-1]}", hint="give the runtime other ports")

    def _spawn(self, slot: SlotDirectory, lock_fd: int, variables: Mapping[str, str]) -> None:
        environment = {name: self._environment[name] for name in _PASSED_ON if name in self._environment}
        environment |= {"HOME": str(slot.path / "tmp"), "TMPDIR": str(slot.path / "tmp"), **variables}
        with (slot.path / "keeper.log").open("ab") as complaints:
            process = subprocess.Popen(  # noqa: S603  (an argument list, no shell)
                [sys.executable, "-I", "-S", "-B", "-X", "utf8", str(_KEEPER), str(slot.path), str(lock_fd)],
                stdin=subprocess.DEVNULL,
                stdout=complaints,
                stderr=complaints,
                cwd=slot.path,
                env=environment,
                pass_fds=(lock_fd,),
                start_new_session=True,
                umask=0o077,
            )
        _children.append(process)
        _reap()

    # stop

    def stop(self, app: str, slot: int, *, token: int, grace_seconds: float = DEFAULT_GRACE_SECONDS) -> WorkerState:
        self.describe(app, slot)
        with self._fence.passed(token):
            self._on_step("fenced")
            where = self._slot(app, slot)
            order = where.order
            assert order is not None
            if order["desired"] == "running" or grace_seconds < order["grace"]:
                order |= {"desired": "stopped", "grace": grace_seconds, "stopped_at": time.time()}
                where.write_order(order)
                self._on_step("ordered")
                self._end(where, order)
            elif time.time() > order["stopped_at"] + order["grace"] + _FORCE_SECONDS:
                self._force(where)
        return self.describe(app, slot)

    def kill(self, app: str, slot: int, *, token: int) -> WorkerState:
        return self.stop(app, slot, token=token, grace_seconds=0)

    def _end(self, slot: SlotDirectory, order: dict[str, float]) -> None:
        """The keeper reads the order. Without one the worker is told itself; the next stop() sees to it that it obeys."""
        if not keeper.send_signal(slot.keeper(), signal.SIGTERM):
            keeper.send_signal(slot.worker(), signal.SIGTERM if order["grace"] > 0 else signal.SIGKILL)

    def _force(self, slot: SlotDirectory) -> None:
        if slot.is_taken():
            keeper.send_signal(slot.worker(), signal.SIGKILL, group=True)
            keeper.send_signal(slot.keeper(), signal.SIGKILL)

    # forget

    def remove_state(self, app: str, slot: int, *, token: int) -> None:
        self._remove(app, slot, token, lambda where: where.state)

    def forget(self, app: str, slot: int, *, token: int) -> None:
        self._remove(app, slot, token, lambda where: where.path)
        with suppress(OSError):  # others are there, or nothing is
            (self._slots / app).rmdir()

    def _remove(self, app: str, slot: int, token: int, what: Callable[[SlotDirectory], Path]) -> None:
        where = self._slot(app, slot)
        with self._fence.passed(token):
            if not where.path.exists():
                return
            with where.locked() as lock_fd:
                if lock_fd is None:
                    raise ConflictError(f"slot {slot} of app {app} is not stopped", hint="stop it first")
                # Renamed at once, deleted after: a large directory takes its time, and half of one would pass for whole.
                doomed = self._slots.parent / "doomed" / uuid.uuid4().hex
                doomed.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                if what(where).exists():
                    what(where).rename(doomed)
        for left in _entries(self._slots.parent / "doomed"):  # also what a server that was killed has left
            shutil.rmtree(left, ignore_errors=True)

    def _slot(self, app: str, slot: int) -> SlotDirectory:
        if not is_name(app) or slot < 0:
            raise InvalidRequestError(
                f"{app!r} with slot {slot} names no slot", hint="give an app's name and an ordinal"
            )
        return SlotDirectory(self._slots / app / str(slot), app, slot)


_children: list[subprocess.Popen[bytes]] = []
"""Keepers this process has started: they are to be waited for, or they stay as zombies."""


def _reap() -> None:
    _children[:] = [child for child in _children if child.poll() is None]


@atexit.register
def _leave_behind() -> None:
    """They outlive this process: subprocess need not warn of it."""
    _reap()
    for child in _children:
        child.returncode = 0


def _entries(path: Path) -> Sequence[Path]:
    try:
        return list(path.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _file_bytes(path: Path) -> int:
    """What it takes on disk; 0 if it was deleted meanwhile."""
    try:
        return path.lstat().st_blocks * 512
    except OSError:
        return 0


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
