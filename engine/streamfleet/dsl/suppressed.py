"""Suppressed and BufferConfig: what `KTable.suppress` holds back, for how long, and what happens when there is too much of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from streamfleet.dsl.names import checked_name
from streamfleet.durations import LONG_MAX, Duration, duration_ms
from streamfleet.errors import OptionError


@dataclass(frozen=True)
class BufferConfig:
    """How much may be held back. Begin with `unbounded()`, `max_records(n)` or `max_bytes(n)`; bounded buffers emit early when they
    are full, unless told to stop the app instead.
    """

    records: int = LONG_MAX
    bytes: int = LONG_MAX
    emits_early: bool = False
    logging: bool | Mapping[str, str] = True

    @staticmethod
    def unbounded() -> BufferConfig:
        """As much as comes. It is kept in memory."""
        return BufferConfig()

    @staticmethod
    def max_records(records: int) -> BufferConfig:
        """At most so many updates; the oldest leave early when there are more."""
        return BufferConfig(emits_early=True).with_max_records(records)

    @staticmethod
    def max_bytes(size: int) -> BufferConfig:
        """At most so many bytes; the oldest updates leave early when there are more."""
        return BufferConfig(emits_early=True).with_max_bytes(size)

    def with_max_records(self, records: int) -> BufferConfig:
        """The same, with this limit as well."""
        return replace(self, records=_limit("max_records", records))

    def with_max_bytes(self, size: int) -> BufferConfig:
        """The same, with this limit as well."""
        return replace(self, bytes=_limit("max_bytes", size))

    def with_no_bound(self) -> BufferConfig:
        """The same without limits."""
        return replace(self, records=LONG_MAX, bytes=LONG_MAX, emits_early=False)

    def emit_early_when_full(self) -> BufferConfig:
        """Emit the oldest updates before their time when there are too many."""
        return replace(self, emits_early=True)

    def shut_down_when_full(self) -> BufferConfig:
        """Fail when there are too many: nothing is emitted before its time."""
        return replace(self, emits_early=False)

    def with_logging(self, logging: bool | Mapping[str, str]) -> BufferConfig:
        """Whether what is held back survives this process; a mapping gives settings of the changelog topic."""
        return replace(self, logging=logging)


def _limit(what: str, number: Any) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise OptionError(f"BufferConfig.{what} must be a whole number, not negative, got {number!r}")
    return number


@dataclass(frozen=True)
class Suppressed:
    """Made by `until_window_closes` or `until_time_limit`."""

    wait_ms: int | None
    """None: until the window closes; how long that is, the windows of the table say."""
    buffer: BufferConfig
    name: str | None = None

    @staticmethod
    def until_window_closes(buffer: BufferConfig, *, name: str | None = None) -> Suppressed:
        """One result per window, when no more records are taken into it. Needs later records to move time on."""
        _check_buffer(buffer)
        if buffer.emits_early:
            raise OptionError(
                "until_window_closes was given a buffer that emits early, but a window's result must not change any more",
                hint="use BufferConfig.unbounded(), or add .shut_down_when_full()",
            )
        return Suppressed(None, buffer, None if name is None else checked_name(name))

    @staticmethod
    def until_time_limit(wait: Duration, buffer: BufferConfig, *, name: str | None = None) -> Suppressed:
        """The last of the updates of a key that come within that time after the first one."""
        _check_buffer(buffer)
        wait_ms = duration_ms(wait, "the time limit of Suppressed")
        return Suppressed(wait_ms, buffer, None if name is None else checked_name(name))


def _check_buffer(buffer: object) -> None:
    if not isinstance(buffer, BufferConfig):
        raise OptionError(f"Suppressed needs a BufferConfig, but was given {buffer!r}", hint="BufferConfig.unbounded()")
