"""Generated text and what belongs to it: which operator each line is about, and how the text becomes functions.

Filled by the code generator. The text is kept where tracebacks and debuggers look for source (linecache), under a name made of its
content, and it is compiled once however many tasks run it.
"""

from __future__ import annotations

import hashlib
import linecache
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Any


@dataclass(frozen=True)
class Place:
    """What a line works on: an operator, and the names of the variables that hold its record. `record` is None where the record
    exists only as its parts; `origin` has timestamp and headers. `above` is the operator that called it, if errors of both are
    caught at the same `except`.
    """

    operator: str
    key: str
    value: str
    origin: str
    record: str | None
    above: Place | None


@dataclass(frozen=True)
class GeneratedSource:
    """One function `bind` whose arguments are `names`, and which returns the functions of the program by name."""

    text: str
    places: Mapping[int, Place]
    names: tuple[str, ...]

    @property
    def file_name(self) -> str:
        """Not a file: in brackets, as Python names what has none."""
        return f"<streamfleet generated {hashlib.sha256(self.text.encode()).hexdigest()[:12]}>"

    def compile(self) -> CodeType:
        return _compiled(self.text, self.file_name)

    def bind(self, objects: Mapping[str, Any]) -> dict[str, Callable[..., Any]]:
        module: dict[str, Any] = {"__name__": "streamfleet.generated"}
        exec(self.compile(), module)  # noqa: S102  # the text is the code generator's, not a user's
        functions: dict[str, Callable[..., Any]] = module["bind"](*(objects[name] for name in self.names))
        return functions


@lru_cache(maxsize=256)
def _compiled(text: str, file_name: str) -> CodeType:
    # Without a time of change, linecache keeps the entry: there is no file that it could compare it with.
    linecache.cache[file_name] = (len(text), None, text.splitlines(keepends=True), file_name)
    return compile(text, file_name, "exec")
