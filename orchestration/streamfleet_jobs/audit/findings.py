"""Finding: one thing that is wrong, with its evidence and what to do; and verdicts over many. Pure values."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, Literal

import msgspec

Severity = Literal["info", "warning", "error"]
Verdict = Literal["clean", "warnings", "errors", "unknown"]


class Finding(msgspec.Struct, frozen=True):
    """As the platform records it."""

    app: str
    topic: str | None
    rule: str
    severity: Severity
    summary: str
    advice: str = ""
    store: str | None = None
    partition: int | None = None
    evidence: dict[str, Any] = {}
    is_unknown: bool = False
    """Something could not be read; not a fault, and not a clean bill either."""


def verdict_of(findings: Iterable[Finding]) -> Verdict:
    """Errors before unknown before warnings: what was not read may hide an error."""
    found = list(findings)
    if any(finding.severity == "error" for finding in found):
        return "errors"
    if any(finding.is_unknown for finding in found):
        return "unknown"
    return "warnings" if any(finding.severity == "warning" for finding in found) else "clean"


def key_name(key: bytes, *, clear: bool) -> str:
    """How a key is told: its hash, or itself where the spec asks for that."""
    if not clear:
        return f"blake2b:{blake2b(key, digest_size=8).hexdigest()}"
    try:
        text = key.decode()
    except UnicodeDecodeError:
        return f"hex:{key.hex()}"
    return text if text.isprintable() else f"hex:{key.hex()}"


def counted(number: int, one: str, many: str) -> str:
    """`1 key is`, `2 keys are`."""
    return f"{number:,} {one if number == 1 else many}"


def size(count: float) -> str:
    """Bytes for people."""
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
