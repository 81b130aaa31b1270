"""What the server writes to its log: lines for people on standard error. Called by process.py before anything else.

Tracebacks are plain: with local variables they would tell settings of clients, tokens, keys. Secrets that the server may hand to
workers are masked wherever a text has them.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Mapping, MutableMapping
from pathlib import Path
from typing import Any, TextIO

import structlog

MASK = "***"
_SHORTEST_SECRET = 3
_LONGEST_FILE = 64 * 1024
Event = MutableMapping[str, Any]


def configure_logs(secrets: Iterable[str] = (), *, stream: TextIO | None = None) -> None:
    """May be called again."""
    target = stream or sys.stderr
    begin: list[Any] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper("%Y-%m-%d %H:%M:%S", utc=True),
    ]
    end: list[Any] = [
        structlog.processors.format_exc_info,
        _Masking(secrets),
        structlog.dev.ConsoleRenderer(
            colors=target.isatty(), pad_event_to=0, exception_formatter=structlog.dev.plain_traceback
        ),
    ]
    structlog.configure(
        processors=[*begin, *end],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(target),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(target)
    formatter = structlog.stdlib.ProcessorFormatter
    handler.setFormatter(formatter(foreign_pre_chain=begin, processors=[formatter.remove_processors_meta, *end]))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)


def known_secrets(environment: Mapping[str, str], variables: Iterable[str], directory: Path | None) -> list[str]:
    """Values that workers may be given, as far as they are there now."""
    found = [environment[name] for name in variables if name in environment]
    for path in () if directory is None else sorted(directory.rglob("*")):
        try:
            if path.is_file() and path.stat().st_size <= _LONGEST_FILE:
                found.append(path.read_text("utf-8").removesuffix("\n"))
        except (OSError, UnicodeDecodeError):
            continue  # no secret that a worker could be given
    return found


class _Masking:
    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = sorted((s for s in secrets if len(s) >= _SHORTEST_SECRET), key=len, reverse=True)

    def __call__(self, _logger: Any, _method: str, event: Event) -> Event:
        return {name: self._masked(value) for name, value in event.items()}

    def _masked(self, value: Any) -> Any:
        text = value if isinstance(value, str) else str(value)
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return text if isinstance(value, str) or text != str(value) else value
