"""Tenure: until when nobody else runs a member's tasks. Written by the membership, which takes it back at once when it gives up its
place; read by the producer of at-least-once before every record, so it is an attribute and not a question.
"""

from __future__ import annotations

FOR_EVER_MS = 1 << 62


class Tenure:
    """`until_ms` is by the monotonic clock, as far as can be known. It stands still when the process does."""

    __slots__ = ("until_ms",)

    def __init__(self, until_ms: int = 0) -> None:
        self.until_ms = until_ms
