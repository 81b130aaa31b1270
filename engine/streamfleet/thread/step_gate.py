"""StepGate: lets other threads look at a StreamThread's tasks between two of its steps. Used by StreamThread and query/.

The StreamThread holds the gate during a step, and opens it while it waits for records. Who wants to look leaves a function:
if the gate is open it is called at once, by who left it; if not, by the StreamThread before its next step, or before it waits.
Nothing is changed while a function looks, and an empty gate costs a step one lock and one look at an empty queue.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from streamfleet.errors import StoreUnavailableError, TooManyQueriesError

T = TypeVar("T")

MAX_WAITING = 64
MAX_PER_STEP = 16
"""Lookers served before a step, so that they cannot keep a thread from its work."""


class _Look(Generic[T]):
    """One function on its way to be called."""

    __slots__ = ("_call", "_done", "_error", "_result", "is_given_up")

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._done = threading.Lock()
        self._done.acquire()
        self._error: Exception | None = None
        self._result: Any = None
        self.is_given_up = False

    def run(self) -> None:
        if not self.is_given_up:
            try:
                self._result = self._call()
            except Exception as error:
                self._error = error
        self._done.release()

    def fail(self, error: Exception) -> None:
        self._error = error
        self._done.release()

    def wait(self, timeout_seconds: float) -> T:
        if not self._done.acquire(timeout=timeout_seconds):
            self.is_given_up = True
            raise StoreUnavailableError(
                f"the stream thread has made no step for {timeout_seconds:g} s", hint="ask again; see /status for why"
            )
        if self._error is not None:
            raise self._error
        result: T = self._result
        return result


class StepGate:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        """Held during a step."""
        self._entry = threading.Lock()
        """Held for a moment by who joins those that wait, and by who closes: so nobody joins after the last was served."""
        self._waiting: deque[_Look[Any]] = deque()
        self._is_closed = False

    # what lookers call

    def look(self, call: Callable[[], T], timeout_seconds: float) -> T:
        """Call `call` between two steps; what it raises is raised here. Waits at most that long."""
        look = _Look(call)
        with self._entry:
            if self._is_closed:
                raise _stopped()
            if len(self._waiting) >= MAX_WAITING:
                raise TooManyQueriesError(
                    f"{MAX_WAITING} queries wait for the stream thread already", hint="ask less often"
                )
            self._waiting.append(look)
        self._serve_if_open()
        return look.wait(timeout_seconds)

    # what the StreamThread calls

    @contextmanager
    def step(self) -> Iterator[None]:
        """Around a step: nobody looks, except who has waited for it to begin."""
        with self._lock:
            if self._waiting:
                self._serve(MAX_PER_STEP)
            yield

    @contextmanager
    def open(self) -> Iterator[None]:
        """Inside a step, around a wait: lookers are welcome."""
        self._lock.release()
        try:
            self._serve_if_open()
            yield
        finally:
            self._lock.acquire()

    def close(self) -> None:
        """There will be no more steps: nobody needs to wait for one."""
        with self._lock:
            with self._entry:
                self._is_closed = True
            self._serve(len(self._waiting))

    def _serve_if_open(self) -> None:
        """Looks again after every release: who came meanwhile found the gate shut, and nobody else may come for long."""
        while self._waiting and self._lock.acquire(blocking=False):
            try:
                self._serve(MAX_WAITING)
            finally:
                self._lock.release()

    def _serve(self, limit: int) -> None:
        """With the lock held."""
        for _ in range(limit):
            try:
                look = self._waiting.popleft()
            except IndexError:
                return
            if self._is_closed:
                look.fail(_stopped())
            else:
                look.run()


def _stopped() -> StoreUnavailableError:
    return StoreUnavailableError("the stream thread has stopped", hint="ask again, or ask elsewhere")
