"""Structured logs of a worker, on standard error: one JSON object per line, or lines for people.

Configures structlog for the engine's own logs, and sends what comes through Python's logging (librdkafka's lines,
kafka-python's, those of the app) through the same processors. Tracebacks never show local variables, and the values of
secret settings never show at all.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, MutableMapping
from typing import Any, Literal, TextIO

import structlog
from structlog.typing import Processor

from streamfleet.worker.secrets import MASK, Redact, is_secret, redactor

LogFormat = Literal["json", "console"]
LogLevel = Literal["debug", "info", "warning", "error"]
Event = MutableMapping[str, Any]

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def configure_logs(
    log_format: LogFormat = "json",
    level: LogLevel = "info",
    *,
    secrets: Iterable[str] = (),
    stream: TextIO | None = None,
) -> None:
    """May be called again, when the configuration has told what its secrets are."""
    target = stream or sys.stderr
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    ending: list[Processor] = [
        structlog.processors.format_exc_info,  # the plain traceback: source lines, no locals
        _Redaction(redactor(secrets)),
        _renderer(log_format, is_terminal=target.isatty()),
    ]
    structlog.configure(
        processors=[*shared, *ending],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(target),
        cache_logger_on_first_use=False,
    )
    _route_logging(target, _LEVELS[level], shared, ending)


def _route_logging(stream: TextIO, level: int, shared: list[Processor], ending: list[Processor]) -> None:
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, structlog.stdlib.ExtraAdder(), *shared],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *ending],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    # kafka-python speaks of every connection; what matters of it, the group client says itself.
    logging.getLogger("kafka").setLevel(max(level, logging.WARNING))


def _renderer(log_format: LogFormat, *, is_terminal: bool) -> Processor:
    if log_format == "json":
        return structlog.processors.JSONRenderer(default=str)
    return structlog.dev.ConsoleRenderer(colors=is_terminal, exception_formatter=structlog.dev.plain_traceback)


class _Redaction:
    """Masks values under secret names, and known secrets wherever a text has them."""

    def __init__(self, redact: Redact) -> None:
        self._redact = redact

    def __call__(self, _logger: Any, _method: str, event: Event) -> Event:
        return {name: MASK if is_secret(name) else self._clean(value) for name, value in event.items()}

    def _clean(self, value: Any) -> Any:
        if isinstance(value, bool | int | float | None):
            return value
        if isinstance(value, dict):
            return {name: MASK if is_secret(str(name)) else self._clean(inner) for name, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self._clean(inner) for inner in value]
        return self._redact(str(value))
