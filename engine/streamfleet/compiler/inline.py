"""Which operators are written into the generated function itself, instead of being called, and as what; and which of those that
are called take a record in its parts.

Asked by the code generator, by the exact type of a node's supplier: a subclass, or a supplier that a ProcessorWrapper put in its
place, may do anything and is called. What the generated text looks like is in code_generator.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from streamfleet.dsl.functions import OfValue
from streamfleet.dsl.operators.aggregate import StreamAggregateOperator
from streamfleet.dsl.operators.stateless import (
    BranchOperator,
    FilterOperator,
    FlatMapOperator,
    FlatMapValuesOperator,
    MapOperator,
    MapValuesOperator,
    PassThroughOperator,
    PeekOperator,
    SelectKeyOperator,
)
from streamfleet.dsl.operators.stream_table_join import StreamTableJoinOperator
from streamfleet.dsl.operators.windowed_aggregate import TimeWindowedAggregateOperator
from streamfleet.topology.nodes import ProcessorNode

Inlined = (
    BranchOperator
    | FilterOperator
    | FlatMapOperator
    | FlatMapValuesOperator
    | MapOperator
    | MapValuesOperator
    | PassThroughOperator
    | PeekOperator
    | SelectKeyOperator
)

_INLINED = frozenset(
    {
        FilterOperator,
        FlatMapOperator,
        FlatMapValuesOperator,
        MapOperator,
        MapValuesOperator,
        PassThroughOperator,
        PeekOperator,
        SelectKeyOperator,
    }
)


_TAKING_PARTS = frozenset({StreamAggregateOperator, StreamTableJoinOperator, TimeWindowedAggregateOperator})
"""All processors that they make are PartsProcessors."""


@dataclass(frozen=True)
class UserFunction:
    """What to call, and with what: a function of the value alone is called without the detour that gives it a key."""

    function: Callable[..., Any]
    takes_key: bool

    @classmethod
    def of(cls, function: Callable[..., Any]) -> UserFunction:
        if type(function) is OfValue:
            return cls(function.function, takes_key=False)
        return cls(function, takes_key=True)


def takes_parts(node: ProcessorNode) -> bool:
    return type(node.supplier) in _TAKING_PARTS


def inlined(node: ProcessorNode, children: tuple[str, ...]) -> Inlined | None:
    """The operator of a node, if it can stand in the generated text."""
    supplier: Any = node.supplier
    if type(supplier) in _INLINED:
        operator: Inlined = supplier
        return operator
    if type(supplier) is BranchOperator:
        branches, default = supplier.branches()
        named = {child for _, child in branches} | ({default} if default is not None else set())
        return supplier if named <= set(children) else None
    return None
