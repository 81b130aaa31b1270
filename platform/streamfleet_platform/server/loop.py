"""Holds the lease and makes pass after pass, in a thread of its own. Made by process.py, and by tests.

Without the lease it only tries to get it: another server acts. While a pass takes long (a broker that does not answer) a second
thread keeps the lease, up to a bound: a pass that hangs for good gives it up. Whatever goes wrong in a pass is logged, and the next
one comes; when several have failed, the server says that it is not ready, and why. Workers never notice whether anybody reconciles.
"""

from __future__ import annotations

import threading
import time

import structlog

from streamfleet_platform.errors import FleetError, StaleError, TransientError
from streamfleet_platform.reconcile.reconciler import Reconciler
from streamfleet_platform.registry.lease import Leadership, Leases, NotLeaderError

log = structlog.get_logger(__name__)

LONGEST_PASS_SECONDS = 600.0
STUCK_AFTER = 3
"""Passes that fail one after the other: from then on it is told wherever the fleet is looked at."""


class Loop:
    """`holder` names this server."""

    def __init__(
        self, reconciler: Reconciler, leases: Leases, holder: str, *, idle_seconds: float, busy_seconds: float
    ) -> None:
        self._reconciler = reconciler
        self._leases = leases
        self._holder = holder
        self._idle = idle_seconds
        self._busy = busy_seconds
        self._wake = threading.Event()
        self._ended = threading.Event()
        self._leadership: Leadership | None = None
        self._thread = threading.Thread(target=self._run, name="reconcile", daemon=True)
        self._keeping = threading.Thread(target=self._keep_lease, name="lease", daemon=True)
        self._pass_began: float | None = None
        self._failures = 0
        self._why = ""
        self.passes = 0
        self.last_pass_seconds = 0.0

    @property
    def is_leader(self) -> bool:
        return self._leadership is not None

    @property
    def leadership(self) -> Leadership | None:
        """What it shows while it leads."""
        return self._leadership

    @property
    def problem(self) -> str | None:
        """Why nobody looks after the fleet, though this server should."""
        if self._failures < STUCK_AFTER:
            return None
        return f"the last {self._failures} passes failed, so nothing is looked after: {self._why}"

    def start(self) -> None:
        self._thread.start()
        self._keeping.start()

    def wake(self) -> None:
        """Something was asked for: do not wait for the next turn."""
        self._wake.set()

    def stop(self, timeout: float = 60.0) -> None:
        """After the pass under way. Workers go on; the lease is free for the next server."""
        self._ended.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout)
        if self._leadership is not None:
            try:
                self._leases.release(self._leadership)
            except FleetError as error:
                log.warning("lease could not be released", error=str(error))
            self._leadership = None

    def _run(self) -> None:
        while not self._ended.is_set():
            pause = self.step()
            self._wake.wait(pause)
            self._wake.clear()

    def step(self) -> float:
        """One turn; how long to wait for the next."""
        try:
            former, self._leadership = self._leadership, self._leases.acquire(self._holder)
            if self._leadership is None:
                self._failures = 0
                return self._idle
            if former is None:
                log.info("leads", holder=self._holder, token=self._leadership.token)
            self._pass_began = began = time.monotonic()
            is_busy = self._reconciler.pass_once(self._leadership)
            self.last_pass_seconds = time.monotonic() - began
            self.passes += 1
            self._failures = 0
        except (NotLeaderError, StaleError) as error:
            log.warning("leads no longer", error=str(error))
            self._leadership = None
            self._failed(error)
            return self._idle
        except TransientError as error:
            log.warning("pass could not be made", error=str(error))
            self._failed(error)
            return max(self._idle, error.retry_after)
        except Exception as error:
            log.exception("pass failed")
            self._failed(error)
            return self._idle
        finally:
            self._pass_began = None
        return self._busy if is_busy else self._idle

    def _failed(self, error: Exception) -> None:
        self._failures += 1
        self._why = str(error) if isinstance(error, FleetError) else f"{type(error).__name__}: {error}"

    def _keep_lease(self) -> None:
        while not self._ended.wait(self._leases.seconds / 3):
            self.keep_lease()

    def keep_lease(self) -> None:
        """Between passes there is nothing to keep: the next one begins with it."""
        began, leadership = self._pass_began, self._leadership
        if began is None or leadership is None or time.monotonic() - began > LONGEST_PASS_SECONDS:
            return
        try:
            self._leases.renew(leadership)
        except FleetError as error:
            log.warning("lease could not be kept", error=str(error))
