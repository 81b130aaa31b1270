"""Checks of the functions a user hands to an operator: made when the topology is built, because a wrong number of arguments would
otherwise show only with the first record.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from streamfleet.errors import OptionError

F = TypeVar("F", bound=Callable[..., Any])
P = TypeVar("P", bound=Callable[..., Any] | None)


def checked_function(operator: str, function: F, what: str, arguments: tuple[str, ...]) -> F:
    """The function itself, if it can be called with that many positional arguments."""
    if not callable(function):
        raise OptionError(
            f"{operator} needs a function of {_listed(arguments)} as {what}, but was given {function!r}",
            hint="pass a function or lambda",
        )
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some built-in functions do not tell theirs
        return function
    try:
        signature.bind(*arguments)
    except TypeError as error:
        raise OptionError(
            f"{operator}: the {what} is called with {_listed(arguments)}, but {_shown(function)} does not fit ({error})",
            hint=f"write it as a function of {len(arguments)} argument(s)",
        ) from error
    return function


def checked_partitioner(operator: str, partitioner: P, what: str = "partitioner") -> P:
    """The partitioner itself, if there is one and it can be called."""
    if partitioner is not None:
        checked_function(operator, partitioner, what, ("topic", "key", "value", "num_partitions"))
    return partitioner


def _listed(arguments: tuple[str, ...]) -> str:
    return f"({', '.join(arguments)})"


def _shown(function: Callable[..., Any]) -> str:
    name = getattr(function, "__qualname__", repr(function))
    code = getattr(function, "__code__", None)
    return f"{name} at {code.co_filename}:{code.co_firstlineno}" if code is not None else str(name)


def with_key(function: Callable[..., Any], *, takes_key: bool) -> Callable[[Any, Any], Any]:
    """A function of key and value from one of the value alone."""
    return function if takes_key else OfValue(function)


class OfValue:
    """A function of the value alone, where one of key and value is called. The compiler calls `function` itself."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def __call__(self, _key: Any, value: Any) -> Any:
        return self.function(value)


def joiner_with_key(joiner: Callable[..., Any], *, takes_key: bool) -> Callable[[Any, Any, Any], Any]:
    """A joiner of key, left and right from one of left and right."""
    if takes_key:
        return joiner
    return lambda _key, left, right: joiner(left, right)
