"""Operating-system threads around step machines: the only place in the engine that starts any.

A StreamThread, its membership and its StateUpdater have one each, so that a slow function keeps neither the membership from its
heartbeats nor stores from being restored, nor the other way round. When the stream thread's loop ends, for whatever reason, it
says why, once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from streamfleet.errors import ApplicationShutdownError, StreamsError
from streamfleet.kafka_streams.wiring import ThreadParts

log = structlog.get_logger(__name__)

JOIN_SECONDS = 10.0


@dataclass(frozen=True)
class AfterFailure:
    """What follows on the failure of a StreamThread."""

    finish: Callable[[], None]
    """Called when the thread has let go of everything."""
    shuts_down_application: bool = False
    """Tell the group before leaving it."""


class ThreadDriver:
    """Steps one StreamThread, its membership and its StateUpdater until it is told to stop or one of them fails."""

    def __init__(
        self, parts: ThreadParts, on_step: Callable[[], None], on_failure: Callable[[Exception], AfterFailure]
    ) -> None:
        """`on_failure` decides what to do about an error; what it returns is called when the thread is closed."""
        self.thread = parts.thread
        self._membership = parts.membership
        self._on_step = on_step
        self._on_failure = on_failure
        self._stopping = threading.Event()
        self._group_failure: BaseException | None = None
        self.close_failure: Exception | None = None
        """What went wrong when it was told to stop."""
        self._wake = parts.wake
        self._updater = parts.updater
        self._updater_wake = parts.updater_wake
        self._stream = threading.Thread(target=self._run_stream, name=self.thread.name, daemon=True)
        self._group = threading.Thread(target=self._run_group, name=f"{self.thread.name}-group", daemon=True)
        self._restore = threading.Thread(target=self._run_updater, name=f"{self.thread.name}-restore", daemon=True)

    def start(self) -> None:
        self.thread.start()
        self._updater.is_stepped_elsewhere = True
        self._group.start()
        self._restore.start()
        self._stream.start()

    def pause(self, paused: bool) -> None:
        self.thread.is_paused = paused
        self._updater.pause(paused)

    def stop(self, *, leave_group: bool = False) -> None:
        """Ask it to stop; `join` waits. `leave_group`: for good, also as a static member."""
        self.thread.leaves_for_good |= leave_group
        self._stopping.set()

    def join(self, timeout_seconds: float) -> bool:
        """Wait until it has stopped; false if it has not. Code of the app that it runs, such as a listener, cannot wait for it."""
        if threading.current_thread() in (self._stream, self._group, self._restore):
            return False
        self._stream.join(timeout_seconds)
        self._group.join(JOIN_SECONDS)
        self._restore.join(JOIN_SECONDS)
        return not self._stream.is_alive()

    def _run_stream(self) -> None:
        try:
            while not self._stopping.is_set():
                self._check_group()
                self.thread.run_once()
                self._on_step()
            self._stop()
        except ApplicationShutdownError as error:
            self._stop()
            self._on_failure(error).finish()
        except BaseException as error:  # also what ends a thread without a word: user code may call sys.exit()
            try:
                log.exception("stream thread failed", thread=self.thread.name)
            finally:  # without a file to write to, even saying so fails
                after = self._on_failure(_as_exception(error, self.thread.name))
                self._close_failed(announce=after.shuts_down_application)
                after.finish()
        finally:
            self._membership.close()  # this thread's own connections; the group's are closed when it is over

    def _stop(self) -> None:
        try:
            self.thread.stop()
        except Exception as error:
            log.exception("stream thread could not be closed", thread=self.thread.name)
            self.close_failure = error
            self._close_failed(announce=False)

    def _close_failed(self, *, announce: bool) -> None:
        try:
            if announce:
                self.thread.announce_shutdown()
            self.thread.fail()
        except Exception:
            log.exception("stream thread could not be closed after a failure", thread=self.thread.name)

    def _run_group(self) -> None:
        try:
            while not self._membership.over:
                wait_ms = self._membership.run_once()
                if wait_ms > 0:
                    self._wake.wait(wait_ms / 1000)
                    self._wake.clear()
        except BaseException as error:
            self._group_failure = error

    def _run_updater(self) -> None:
        try:
            while not self._updater.over:
                wait_ms = self._updater.run_once()
                if wait_ms > 0:
                    self._updater_wake.wait(wait_ms / 1000)
                    self._updater_wake.clear()
        except BaseException as error:
            if not self._updater.is_closing:  # it may have asked an absent broker until the clients were gone
                log.exception("state updater failed", thread=self.thread.name)
            self._updater.is_stepped_elsewhere = False
            self._updater.fail(_as_exception(error, self.thread.name))

    def _check_group(self) -> None:
        """Without its membership a StreamThread would wait for plans for ever, and say nothing."""
        if self._group_failure is not None:
            raise StreamsError(
                f"the group membership of stream thread {self.thread.name} failed: {self._group_failure!r}",
                hint="start the app again; if it comes back, report it with the log",
            ) from self._group_failure


def _as_exception(error: BaseException, thread: str) -> Exception:
    """What handlers are asked about, and what errors are chained to, are Exceptions."""
    if isinstance(error, Exception):
        return error
    failure = StreamsError(
        f"stream thread {thread} was ended by {error!r}",
        hint="code of the app must not end a thread; to end the app, raise an Exception, or close it from its main thread",
    )
    failure.__cause__ = error
    return failure
