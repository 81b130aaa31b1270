"""What a plain scalar means: null, true, false, a decimal number, or text. Called by yaml_nodes.py.

YAML 1.1 and 1.2 disagree about `no`, `on`, `012`, `1e3`, `1:30` and a few more, and so do people. Those are refused, with the
two ways to write what is meant.
"""

from __future__ import annotations

import re

Scalar = str | int | float | bool | None

_WORDS: dict[str, bool | None] = {"null": None, "~": None, "": None, "true": True, "false": False}
_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"-?(0|[1-9][0-9]*)\.[0-9]+")
_BOOLEAN_1_1 = frozenset({"y", "yes", "n", "no", "on", "off", "true", "false", "null"})
_NUMBER_LIKE = re.compile(
    r"[-+]?(0[0-9_]+|0b[01_]+|0o[0-7_]+|0x[0-9a-f_]+|[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?|[0-9_.]+(e[-+]?[0-9]+)?)"
    r"|[-+]?\.(inf|nan)|\d{4}-\d\d?-\d\d?([t \t].*)?|=",
    re.IGNORECASE,
)
_LONGEST = 18
"""Characters of a number that every reader keeps: it fits 8 bytes."""


class AmbiguousScalarError(ValueError):
    """Readers do not agree on what it is."""

    def __init__(self, fact: str, hint: str) -> None:
        super().__init__(f"{fact}; {hint}")
        self.fact = fact
        self.hint = hint


def read_plain(text: str) -> Scalar:
    """The value of a scalar that is not in quotes."""
    if text in _WORDS:
        return _WORDS[text]
    if text.lower() in _BOOLEAN_1_1:
        raise AmbiguousScalarError(
            f"{text} is true or false to some readers and text to others",
            'write true or false, or "' + text + '" for text',
        )
    is_integer = _INTEGER.fullmatch(text) is not None
    if is_integer or _FLOAT.fullmatch(text) is not None:
        if len(text) > _LONGEST:
            raise AmbiguousScalarError(
                f"the number {text[:40]} is too large", "write a smaller one, or use quotes for text"
            )
        return int(text) if is_integer else float(text)
    if len(text) < 100 and _NUMBER_LIKE.fullmatch(text) is not None and any(c.isalnum() or c == "=" for c in text):
        raise AmbiguousScalarError(
            f"{text} is a number or date to some readers and text to others",
            "write a plain decimal number, or use quotes",
        )
    return text
