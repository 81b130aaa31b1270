"""The StreamThreads of one process: started, added, removed, replaced and joined together. Owned by KafkaStreams."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable

from streamfleet.errors import StreamsError
from streamfleet.kafka_streams.driver import AfterFailure, ThreadDriver
from streamfleet.kafka_streams.wiring import ThreadParts
from streamfleet.thread.thread_phases import ThreadPhase

Make = Callable[[int], ThreadParts]
"""Makes the thread of a number: with the same number come the same transactional id and the same static member."""

OnFailure = Callable[[int, Exception], AfterFailure]


class ThreadPool:
    def __init__(self, make: Make, on_step: Callable[[], None], on_failure: OnFailure) -> None:
        self._make = make
        self._on_step = on_step
        self._on_failure = on_failure
        self._drivers: dict[int, ThreadDriver] = {}
        self._leaving: dict[int, ThreadDriver] = {}
        """Removed, and perhaps not at their end: until then nobody may have their number, nor close what they use."""
        self._lock = threading.RLock()
        self._is_stopped = False
        """Nothing is started any more. Looked at and set under the lock, so that `stop` reaches whatever was started before it."""
        self.is_paused = False

    @property
    def drivers(self) -> list[ThreadDriver]:
        with self._lock:
            return [self._drivers[number] for number in sorted(self._drivers)]

    @property
    def all_running(self) -> bool:
        return all(driver.thread.phase is ThreadPhase.RUNNING for driver in self.drivers)

    def prepare(self, count: int) -> None:
        """Make threads without starting them: what can fail, fails here."""
        for number in range(count):
            self._drivers[number] = self._driver(number)

    def start(self) -> None:
        for driver in self.drivers:
            driver.start()

    def add(self) -> int:
        """Start one more thread; returns its number, the lowest that is free."""
        with self._lock:
            if self._is_stopped:
                raise StreamsError("the app is being closed", hint="threads come and go only while it runs")
            number = next(n for n in itertools.count() if n not in self._drivers and n not in self._leaving)
            self._begin(number)
        return number

    def remove(self, timeout_seconds: float) -> int:
        """Stop the thread with the highest number; the others take its tasks over."""
        with self._lock:
            if len(self._drivers) < 2:
                raise StreamsError("the last stream thread cannot be removed", hint="close the app instead")
            number = max(self._drivers)
            driver = self._leaving[number] = self._drivers.pop(number)
        driver.stop(leave_group=True)  # nobody comes back under its name
        if not driver.join(timeout_seconds):
            raise StreamsError(
                f"stream thread {number} did not stop within {timeout_seconds:g} s",
                hint="it stops behind the record that it processes, and its number is not given to another one",
            )
        with self._lock:
            del self._leaving[number]
        return number

    def replace(self, number: int) -> bool:
        """Start a new thread in the place of one that has failed; false if all are being stopped. Called by the failed one, at its
        very end.
        """
        with self._lock:
            if self._is_stopped:
                return False
            self._begin(number)
        return True

    def _begin(self, number: int) -> None:
        driver = self._driver(number)
        driver.start()
        self._drivers[number] = driver

    def pause(self, paused: bool) -> None:
        self.is_paused = paused
        for driver in self.drivers:
            driver.pause(paused)

    def stop(self, *, leave_group: bool = False) -> None:
        """For good; `join` waits."""
        with self._lock:
            self._is_stopped = True
        for driver in self.drivers:
            driver.stop(leave_group=leave_group)

    def join(self, timeout_seconds: float) -> bool:
        """Wait for all of them, for that long altogether; false if one has not stopped."""
        deadline = time.monotonic() + timeout_seconds
        with self._lock:
            leaving = list(self._leaving.values())
        stopped = [driver.join(max(0.0, deadline - time.monotonic())) for driver in (*leaving, *self.drivers)]
        return all(stopped)

    def _driver(self, number: int) -> ThreadDriver:
        driver = ThreadDriver(self._make(number), self._on_step, lambda error: self._on_failure(number, error))
        driver.pause(self.is_paused)
        return driver
