"""From an error in generated code to the operator and the record it is about; then the processing handler decides.

Called by the generated code at every `except`. The line that raised says which operator was at work, and the variables of its frame
hold the record. What ProcessingFailures lets pass goes on to the operators above, each in turn, as it would in the interpreter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamfleet.compiler.failures import ProcessingFailures
from streamfleet.compiler.generated_source import Place
from streamfleet.records import Record


class GeneratedFailures:
    """`failed` of one program."""

    __slots__ = ("_failures", "_places")

    def __init__(self, failures: ProcessingFailures, places: Mapping[int, Place]) -> None:
        self._failures = failures
        self._places = places

    def __call__(self, error: Exception) -> None:
        """Return if the record is to be left out, raise if the task is to fail."""
        traceback = error.__traceback__
        assert traceback is not None, "called with an error that was not raised"
        place, variables = self._places.get(traceback.tb_lineno), traceback.tb_frame.f_locals
        while place is not None:
            try:
                self._failures.handle(place.operator, record_at(place, variables), error)
                return
            except Exception as raised:
                error, place = raised, place.above
        raise error


def record_at(place: Place, variables: Mapping[str, Any]) -> Record[Any, Any]:
    """The record that an operator was given, from the variables of the function it stands in."""
    if place.record is not None:
        record: Record[Any, Any] = variables[place.record]
        return record
    origin = variables[place.origin]
    return Record(variables[place.key], variables[place.value], origin.timestamp, origin.headers)
