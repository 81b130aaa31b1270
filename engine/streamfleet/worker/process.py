"""The life of a worker process: starts the app, opens the HTTP door, waits for a signal or a failure, and ends with an
exit code.

    start ──> wait ── SIGTERM, SIGINT ──> close ── in time ──────────────────────> 0
                │                           └───── second signal, or grace over ─> 143
                └──── the app failed ─────> close, in time or not ───────────────> 1, or 2 for a wrong setting

Starting and closing may take long (an absent broker, a large commit), so both happen beside the main thread, which only
waits. Signals and changes of state come to it through one queue, whose `put` is safe in a signal handler.
"""

from __future__ import annotations

import ipaddress
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import NoReturn

import msgspec
import structlog

from streamfleet.clock import Clock, SystemClock
from streamfleet.config import StreamsConfig
from streamfleet.errors import StreamsError
from streamfleet.kafka_streams.client import KafkaStreams
from streamfleet.kafka_streams.states import ClientState
from streamfleet.state.state_directory import StateDirectory
from streamfleet.topology.topology import Topology
from streamfleet.worker.app_record import AppRecordFile, record_of
from streamfleet.worker.controls import Controls
from streamfleet.worker.digest_pages import PREFIX as DIGEST_PREFIX
from streamfleet.worker.digest_pages import DigestPages
from streamfleet.worker.exit_codes import ExitCode, exit_code_of
from streamfleet.worker.garbage import looked_for_seldom
from streamfleet.worker.http_door import HttpDoor, Pages, url_of
from streamfleet.worker.http_routes import Routes
from streamfleet.worker.http_server import Address
from streamfleet.worker.observed_app import ObservedApp
from streamfleet.worker.peers import Peers
from streamfleet.worker.query_pages import QueryPages
from streamfleet.worker.query_questions import PREFIX as QUERY_PREFIX
from streamfleet.worker.secrets import redactor, secrets_of

log = structlog.get_logger(__name__)

SIGNALS = (signal.SIGTERM, signal.SIGINT)
DEFAULT_GRACE_SECONDS = 25.0
"""Less than the half minute that supervisors usually wait before they kill."""
WAKE_SECONDS = 0.25
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class WorkerSettings(msgspec.Struct, frozen=True):
    """`http` None: no HTTP door."""

    http: Address | None = Address("127.0.0.1", 0)
    grace_seconds: float = DEFAULT_GRACE_SECONDS
    control_token: str | None = None
    """What a caller of /control/ has to show; None: callers on this machine may do without."""


class _Signalled(msgspec.Struct, frozen=True):
    name: str


class _Over(msgspec.Struct, frozen=True):
    """The app has ended, or could not start."""


class _Closed(msgspec.Struct, frozen=True):
    in_time: bool


class _GraceOver(msgspec.Struct, frozen=True):
    pass


_Happening = _Signalled | _Over | _Closed | _GraceOver


class Worker:
    """`hurry` ends the process at once; tests replace it."""

    def __init__(
        self,
        topology: Topology,
        config: StreamsConfig,
        settings: WorkerSettings,
        *,
        clock: Clock | None = None,
        streams: KafkaStreams | None = None,
        hurry: Callable[[int], NoReturn] = os._exit,
    ) -> None:
        self._config = config
        self._settings = settings
        self._streams = streams or KafkaStreams(topology, config)
        self._clock = clock or SystemClock()
        self._app = ObservedApp(self._streams, topology, self._clock)
        self._record = record_of(topology, config.application_id, config.store_epochs)
        self._happenings: queue.SimpleQueue[_Happening] = queue.SimpleQueue()
        self._starter = threading.Thread(target=self._start, name="worker-start", daemon=True)
        self._hurry = hurry
        self._closing = threading.Lock()

    @property
    def failure(self) -> Exception | None:
        """Why the app ended, if not because it was asked to."""
        return self._app.failure

    def run(self) -> ExitCode:
        """Returns when the worker has ended in good order; a dirty end does not return. Call it in the main thread."""
        with looked_for_seldom(self._config.gc_threshold):
            return self._run()

    def _run(self) -> ExitCode:
        self._remember_topics()
        peers, address = Peers(self._config.application_id), self._settings.http
        door = None if address is None else HttpDoor(self._routes(peers, address), address)
        former = {number: signal.signal(number, self._on_signal) for number in SIGNALS}
        try:
            if door is not None:
                self._advertise(door.open())
            self._streams.set_state_listener(self._on_state)
            self._starter.start()
            return self._wait()
        finally:
            for number, handler in former.items():
                signal.signal(number, handler)
            if door is not None:
                door.close()
            peers.close()

    def _routes(self, peers: Peers, address: Address) -> Routes:
        token = self._settings.control_token
        secrets = secrets_of(self._config.client_settings) | ({token} if token is not None else set())
        routes = Pages(self._app, redactor(secrets)).routes
        asked = self._streams.metrics().queries
        queries = QueryPages(self._config.application_id, lambda: self._streams.queries, peers, self._clock, asked)
        routes.get(QUERY_PREFIX, queries.answer)
        routes.get(DIGEST_PREFIX, DigestPages(lambda: self._streams.queries).answer)
        Controls(self._streams, self._drain, token=token, is_local=address.host in LOOPBACK).add_to(routes)
        return routes

    def _advertise(self, address: Address) -> None:
        """Others find this worker's state where its door is; one that listens everywhere has to say where that is."""
        log.info("http door open", url=url_of(address))
        if not ipaddress.ip_address(address.host).is_unspecified:
            self._streams.advertise(url_of(address).removeprefix("http://"))
        elif self._config.application_server is None:
            log.info("other workers cannot send queries here", hint="set application.server to this worker's address")

    def _remember_topics(self) -> None:
        directory = StateDirectory(self._config.state_dir, self._config.application_id)
        record = AppRecordFile(directory.path).add(self._record)
        if record.is_reset_pending:
            raise StreamsError(
                f"a reset of app {self._config.application_id} was begun and not finished",
                hint="run `streamfleet worker reset` again",
            )

    # what happens, told by other threads and by the signal handler

    def _start(self) -> None:
        try:
            self._streams.start()
        except BaseException as error:  # also what ends a thread without a word: code of the app may call sys.exit()
            failure = error if isinstance(error, Exception) else StreamsError(f"the start was ended by {error!r}")
            self._app.on_start_failure(failure)
            self._happenings.put(_Over())

    def _on_state(self, state: ClientState, _before: ClientState) -> None:
        self._app.on_state(state)
        if state is ClientState.ERROR:
            self._happenings.put(_Over())

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self._happenings.put(_Signalled(signal.Signals(number).name))

    def _close(self) -> None:
        if self._streams.state is not ClientState.CREATED:
            self._starter.join()  # its last steps start the threads that are to be stopped
        self._happenings.put(_Closed(self._close_app(leave_group=False)))

    def _drain(self) -> None:
        """Give the tasks to others, and stay: the door goes on answering until a signal ends the process."""
        self._starter.join()
        if self._close_app(leave_group=True):
            log.info("drained", application=self._config.application_id)

    def _close_app(self, *, leave_group: bool) -> bool:
        with self._closing:
            try:
                return self._streams.close(self._settings.grace_seconds, leave_group=leave_group)
            except Exception:
                log.exception("the app could not be closed")
                return False

    # the main thread

    def _wait(self) -> ExitCode:
        happening = self._next(deadline=None)
        if isinstance(happening, _Signalled):
            log.info("shutting down", signal=happening.name, grace_seconds=self._settings.grace_seconds)
        return self._shut_down()

    def _shut_down(self) -> ExitCode:
        never_started = self._streams.state is ClientState.CREATED
        deadline = time.monotonic() + self._settings.grace_seconds
        threading.Thread(target=self._close, name="worker-close", daemon=True).start()
        while True:
            happening = self._next(deadline)
            if isinstance(happening, _Closed):
                return self._end(happening, never_started=never_started)
            if isinstance(happening, _Signalled):
                self._end_dirty(f"second signal {happening.name}")
            if isinstance(happening, _GraceOver):
                self._end_dirty(f"grace period of {self._settings.grace_seconds:g} s over")

    def _next(self, deadline: float | None) -> _Happening:
        """Wakes up now and then: the system may give a signal to any thread, but only the main one runs its handler."""
        while deadline is None or time.monotonic() < deadline:
            left = WAKE_SECONDS if deadline is None else min(WAKE_SECONDS, max(0.0, deadline - time.monotonic()))
            with suppress(queue.Empty):
                return self._happenings.get(timeout=left)
        return _GraceOver()

    def _end(self, closed: _Closed, *, never_started: bool) -> ExitCode:
        if not closed.in_time:
            self._end_dirty("not all threads have stopped")
        if self.failure is not None:
            kind = type(self.failure).__name__
            log.error("app failed", application=self._config.application_id, kind=kind, error=str(self.failure))
            return exit_code_of(self.failure)
        log.info("stopped", application=self._config.application_id)
        if never_started:
            # The start may still be waiting for a broker, in a thread that nobody can interrupt. There is nothing to lose.
            self._leave_at_once(ExitCode.CLEAN)
        return ExitCode.CLEAN

    def _end_dirty(self, reason: str) -> NoReturn:
        failure = None if self.failure is None else str(self.failure)
        log.error(
            "ended without a last commit", application=self._config.application_id, reason=reason, failure=failure
        )
        self._leave_at_once(ExitCode.DIRTY if self.failure is None else exit_code_of(self.failure))

    def _leave_at_once(self, code: ExitCode) -> NoReturn:
        sys.stdout.flush()
        sys.stderr.flush()
        self._hurry(code)
