"""What commands show: tables for people, the API's own views as JSON for programs. Everything is printed as plain text: names
and messages come from outside, and must not be taken for markup or colour codes of a terminal.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel
from rich.console import Console
from rich.table import Table
from rich.text import Text

from streamfleet_platform import views
from streamfleet_platform.model.operation import OperationState
from streamfleet_platform.model.phase import Phase
from streamfleet_platform.model.quantities import bytes_text

_GOOD, _BUSY, _BAD = "green", "yellow", "red"
_PHASE_STYLES = {
    Phase.RUNNING: _GOOD,
    **dict.fromkeys((Phase.DEGRADED, Phase.FAILED, Phase.CRASH_LOOP, Phase.QUARANTINED, Phase.WAITING), _BAD),
}
_OPERATION_STYLES = {
    OperationState.SUCCEEDED: _GOOD,
    **dict.fromkeys((OperationState.FAILED, OperationState.ROLLED_BACK, OperationState.CANCELLED), _BAD),
}
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def console() -> Console:
    """Made when it is used: tests and pipes change standard output."""
    return Console(file=sys.stdout, highlight=False, soft_wrap=not sys.stdout.isatty())


def plain(value: object, style: str = "") -> Text:
    """Text that is only text, without what would move a terminal's cursor or turn its direction."""
    return Text(_CONTROLS.sub("\N{REPLACEMENT CHARACTER}", str(value)), style=style)


def print_line(text: object, style: str = "") -> None:
    console().print(plain(text, style))


def print_json(value: BaseModel | Sequence[BaseModel] | dict[str, Any] | list[Any]) -> None:
    def content(part: object) -> object:
        if isinstance(part, BaseModel):
            return part.model_dump(mode="json")
        return [content(each) for each in part] if isinstance(part, list | tuple) else part

    print(json.dumps(content(value), indent=2, ensure_ascii=True))


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    table = Table(title=plain(title), title_justify="left", title_style="bold", header_style="bold", box=None)
    for column in columns:
        table.add_column(column.lstrip(">"), justify="right" if column.startswith(">") else "left", overflow="fold")
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else plain(cell) for cell in row))
    console().print(table)


def phase(app: views.AppSummary) -> Text:
    return plain(app.phase.value, _PHASE_STYLES.get(app.phase, _BUSY))


def operation_state(operation: views.OperationRef) -> Text:
    return plain(operation.state.value, _OPERATION_STYLES.get(operation.state, _BUSY))


def count(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"


def size(number: int | None) -> str:
    return "?" if number is None else bytes_text(number)


def age(at: datetime | None) -> str:
    """How long ago, in the largest unit."""
    if at is None:
        return "never"
    seconds = max(0, int((datetime.now(UTC) - at).total_seconds()))
    for length, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"
