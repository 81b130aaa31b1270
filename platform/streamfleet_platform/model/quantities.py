"""Durations and sizes as definitions write them: `500ms`, `60s`, `20m`, `1h`, `3d`; `512Mi`, `20Gi`. A unit is required:
a bare number means milliseconds to one reader and seconds to the next.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from streamfleet_platform.model.section import refusal, shown

DURATION_PATTERN = r"^(0|[1-9][0-9]{0,9})(ms|s|m|h|d)$"
SIZE_PATTERN = r"^(0|[1-9][0-9]{0,9})(Ki|Mi|Gi|Ti)$"

_DURATION_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_SIZE_UNITS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_LONGEST_MS = 3650 * 86_400_000
_LARGEST_BYTES = 2**60


def parse_duration_ms(value: Any) -> int:
    """Milliseconds. Ten years is the longest."""
    return _parse(
        value, DURATION_PATTERN, _DURATION_UNITS, _LONGEST_MS, "a duration", "such as 500ms, 60s, 20m, 1h or 3d"
    )


def parse_bytes(value: Any) -> int:
    return _parse(value, SIZE_PATTERN, _SIZE_UNITS, _LARGEST_BYTES, "a size", "such as 512Mi or 20Gi")


def _parse(value: Any, pattern: str, units: dict[str, int], most: int, what: str, examples: str) -> int:
    match = re.fullmatch(pattern[1:-1], value) if isinstance(value, str) else None
    if match is None:
        raise refusal(f"{shown(value)} is not {what}", f"write a whole number with its unit, {examples}")
    number = int(match[1]) * units[match[2]]
    if number > most:
        raise refusal(f"{shown(value)} is too large", "give a smaller one")
    return number


def duration_text(milliseconds: float) -> str:
    """For people: the largest unit that leaves a readable number."""
    for unit, size in reversed(_DURATION_UNITS.items()):
        if milliseconds >= size:
            return f"{milliseconds / size:.3g} {unit}"
    return f"{milliseconds:.3g} ms"


def bytes_text(size: float) -> str:
    for unit, factor in reversed(_SIZE_UNITS.items()):
        if size >= factor:
            return f"{size / factor:.3g} {unit}B"
    return f"{size:.0f} B"


_DURATION_SCHEMA = {"type": "string", "pattern": DURATION_PATTERN}
_SIZE_SCHEMA = {"type": "string", "pattern": SIZE_PATTERN}


def _replace_by(schema: dict[str, str]) -> Any:
    """In files these are text, whatever they are here."""

    def change(generated: dict[str, Any]) -> None:
        for name in ("type", "minimum", "exclusiveMinimum", "default"):
            generated.pop(name, None)
        generated.update(schema)

    return change


DurationMs = Annotated[int, BeforeValidator(parse_duration_ms), Field(json_schema_extra=_replace_by(_DURATION_SCHEMA))]
Bytes = Annotated[int, BeforeValidator(parse_bytes), Field(json_schema_extra=_replace_by(_SIZE_SCHEMA))]
