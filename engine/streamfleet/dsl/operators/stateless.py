"""Operators without state: filter, map, flat map, peek, split, print. Every one forwards as it goes and keeps nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from streamfleet.processor.api import Processor
from streamfleet.records import Change, Record

AnyProcessor = Processor[Any, Any, Any, Any]
KeyValueFunction = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class FilterOperator:
    """Keeps the records a predicate accepts (`negate`: refuses). Null keys and values reach the predicate."""

    predicate: KeyValueFunction
    negate: bool

    def __call__(self) -> AnyProcessor:
        return _Filter(self.predicate, self.negate)


class _Filter(AnyProcessor):
    def __init__(self, predicate: KeyValueFunction, negate: bool) -> None:
        self._predicate = predicate
        self._negate = negate

    def process(self, record: Record[Any, Any]) -> None:
        if bool(self._predicate(record.key, record.value)) is not self._negate:
            self.context.forward(record)


@dataclass(frozen=True)
class MapOperator:
    """A new key and value for each record."""

    function: KeyValueFunction

    def __call__(self) -> AnyProcessor:
        return _Map(self.function)


class _Map(AnyProcessor):
    def __init__(self, function: KeyValueFunction) -> None:
        self._function = function

    def process(self, record: Record[Any, Any]) -> None:
        key, value = as_pair(self._function(record.key, record.value), "map")
        self.context.forward(Record(key, value, record.timestamp, record.headers))


@dataclass(frozen=True)
class SelectKeyOperator:
    """A new key for each record."""

    function: KeyValueFunction

    def __call__(self) -> AnyProcessor:
        return _SelectKey(self.function)


class _SelectKey(AnyProcessor):
    def __init__(self, function: KeyValueFunction) -> None:
        self._function = function

    def process(self, record: Record[Any, Any]) -> None:
        key = self._function(record.key, record.value)
        self.context.forward(Record(key, record.value, record.timestamp, record.headers))


@dataclass(frozen=True)
class MapValuesOperator:
    """A new value for each record, from key and value."""

    function: KeyValueFunction

    def __call__(self) -> AnyProcessor:
        return _MapValues(self.function)


class _MapValues(AnyProcessor):
    def __init__(self, function: KeyValueFunction) -> None:
        self._function = function

    def process(self, record: Record[Any, Any]) -> None:
        value = self._function(record.key, record.value)
        self.context.forward(Record(record.key, value, record.timestamp, record.headers))


@dataclass(frozen=True)
class FlatMapOperator:
    """Any number of records for each."""

    function: KeyValueFunction

    def __call__(self) -> AnyProcessor:
        return _FlatMap(self.function)


class _FlatMap(AnyProcessor):
    def __init__(self, function: KeyValueFunction) -> None:
        self._function = function

    def process(self, record: Record[Any, Any]) -> None:
        for pair in self._function(record.key, record.value):
            key, value = as_pair(pair, "flat_map")
            self.context.forward(Record(key, value, record.timestamp, record.headers))


@dataclass(frozen=True)
class FlatMapValuesOperator:
    """Any number of values for each record."""

    function: KeyValueFunction

    def __call__(self) -> AnyProcessor:
        return _FlatMapValues(self.function)


class _FlatMapValues(AnyProcessor):
    def __init__(self, function: KeyValueFunction) -> None:
        self._function = function

    def process(self, record: Record[Any, Any]) -> None:
        for value in self._function(record.key, record.value):
            self.context.forward(Record(record.key, value, record.timestamp, record.headers))


@dataclass(frozen=True)
class PeekOperator:
    """Calls a function with each record; `forwards` is false for foreach, which ends the stream."""

    action: KeyValueFunction
    forwards: bool

    def __call__(self) -> AnyProcessor:
        return _Peek(self.action) if self.forwards else _Foreach(self.action)


class _Peek(AnyProcessor):
    def __init__(self, action: KeyValueFunction) -> None:
        self._action = action

    def process(self, record: Record[Any, Any]) -> None:
        self._action(record.key, record.value)
        self.context.forward(record)


class _Foreach(AnyProcessor):
    def __init__(self, action: KeyValueFunction) -> None:
        self._action = action

    def process(self, record: Record[Any, Any]) -> None:
        self._action(record.key, record.value)


@dataclass(frozen=True)
class PrintOperator:
    """Writes `[label]: key, value` for each record, or what the mapper makes of it; None means standard output at the time of
    writing.
    """

    label: str
    file: TextIO | None
    mapper: KeyValueFunction | None = None

    def __call__(self) -> AnyProcessor:
        return _Foreach(self._write)

    def _write(self, key: Any, value: Any) -> None:
        if self.mapper is not None:
            text = f"{self.mapper(key, value)}"
        else:
            text = f"{key}, {(value.new, value.old) if isinstance(value, Change) else value}"
        print(f"[{self.label}]: {text}", file=self.file or sys.stdout)


class PassThroughOperator:
    """Forwards what it gets: merge, and the branches of a split."""

    def __call__(self) -> AnyProcessor:
        return _PassThrough()


class _PassThrough(AnyProcessor):
    def process(self, record: Record[Any, Any]) -> None:
        self.context.forward(record)


class BranchOperator:
    """Forwards each record to the branch of the first predicate that accepts it, else to the default branch, if there is one.

    Both lists grow while the user adds branches, after this operator was made.
    """

    def __init__(self, predicates: Sequence[KeyValueFunction], children: Sequence[str]) -> None:
        self._predicates = predicates
        self._children = children

    def __call__(self) -> AnyProcessor:
        return _Branch(*self.branches())

    def branches(self) -> tuple[tuple[tuple[KeyValueFunction, str], ...], str | None]:
        """Predicates with the node that gets what they accept, and the node of the default branch."""
        predicates, children = tuple(self._predicates), tuple(self._children)
        default = children[len(predicates)] if len(children) > len(predicates) else None
        return tuple(zip(predicates, children, strict=False)), default


class _Branch(AnyProcessor):
    def __init__(self, branches: tuple[tuple[KeyValueFunction, str], ...], default: str | None) -> None:
        self._branches = branches
        self._default = default

    def process(self, record: Record[Any, Any]) -> None:
        for predicate, child in self._branches:
            if predicate(record.key, record.value):
                self.context.forward(record, child)
                return
        if self._default is not None:
            self.context.forward(record, self._default)


def as_pair(result: Any, operator: str) -> tuple[Any, Any]:
    """What a function returned, if it is a key and a value."""
    if isinstance(result, tuple) and len(result) == 2:
        return result
    raise TypeError(f"the function of {operator} must return a (key, value) pair, but returned {result!r}")
