"""When to look for closed windows: emitting on close scans the store, so it is done only when it can find something, and at most
once in an interval of wall-clock time. The last close time travels with the committed offsets, so that a restart emits no window
twice and leaves none out.
"""

from __future__ import annotations

from streamfleet.processor.api import InternalProcessorContext
from streamfleet.records import NO_TIMESTAMP

DEFAULT_INTERVAL_MS = 1000


class CloseTimer:
    """Kept by one processor; `name` (of its store) is the key under which the last close time is committed."""

    def __init__(self, context: InternalProcessorContext, name: str) -> None:
        self._context = context
        self._name = name
        configured = context.config.windowed_emit_interval_ms
        self._interval_ms = DEFAULT_INTERVAL_MS if configured is None else configured
        self._next_scan_ms = 0
        committed = context.processor_metadata(name)
        self.last_close_time = NO_TIMESTAMP if committed is None else committed

    @property
    def has_emitted(self) -> bool:
        return self.last_close_time != NO_TIMESTAMP

    def is_due(self, close_time: int) -> bool:
        """True if enough time has passed since the last look, and close time has moved on. Starts the next interval."""
        now = self._context.current_system_time_ms()
        if self._next_scan_ms - self._interval_ms <= now < self._next_scan_ms:  # else the clock was set back
            return False
        self._next_scan_ms = now + self._interval_ms
        return not self.has_emitted or self.last_close_time < close_time

    def emitted(self, close_time: int) -> None:
        self.last_close_time = close_time
        self._context.set_processor_metadata(self._name, close_time)
