"""Splitting a stream: each record goes to the first branch whose predicate is true, else to the default branch, if there is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from streamfleet.dsl.functions import checked_function
from streamfleet.dsl.graph import ProcessorGraphNode
from streamfleet.dsl.operators.stateless import BranchOperator, PassThroughOperator
from streamfleet.errors import OptionError

if TYPE_CHECKING:
    from streamfleet.dsl.kstream import KStream

K = TypeVar("K")
V = TypeVar("V")

Using = Callable[["KStream[Any, Any]"], "KStream[Any, Any] | None"]
"""Chains operators on a branch where it is made; what it returns stands in the result, None leaves the branch out of it."""


class BranchedKStream(Generic[K, V]):
    """`stream.split().branch(...).branch(...).default_branch()` gives the branches by name: that of the split (generated if it has
    none), followed by that of the branch, or by its number: 1, 2, ... in order, 0 for the default branch.
    """

    def __init__(self, source: KStream[K, V], name: str | None) -> None:
        self._source = source
        self._predicates: list[Callable[[Any, Any], Any]] = []
        self._children: list[str] = []
        self._branches: dict[str, KStream[Any, Any]] = {}
        self._is_complete = False
        scope = source._scope
        node_name = scope.names.node(name, "KSTREAM-BRANCH-")
        self._node = ProcessorGraphNode(node_name, BranchOperator(self._predicates, self._children))
        scope.graph.add(source._node, self._node)

    def branch(
        self, predicate: Callable[[K, V], Any], *, name: str | None = None, using: Using | None = None
    ) -> BranchedKStream[K, V]:
        """Add a branch for the records that no earlier branch took and for which the predicate is true."""
        self._check_open()
        self._predicates.append(checked_function("branch", predicate, "predicate", ("key", "value")))
        self._add(len(self._predicates), name, using)
        return self

    def default_branch(self, *, name: str | None = None, using: Using | None = None) -> dict[str, KStream[Any, Any]]:
        """Add a branch for all other records. This ends the split."""
        self._check_open()
        self._add(0, name, using)
        self._is_complete = True
        return self._branches

    def no_default_branch(self) -> dict[str, KStream[Any, Any]]:
        """Drop all other records. This ends the split."""
        self._is_complete = True
        return self._branches

    def _add(self, number: int, name: str | None, using: Using | None) -> None:
        child = f"{self._node.name}{number if name is None else name}"
        self._source._scope.names.generate(child)  # uses up a number, as every node does
        self._children.append(child)
        branch = self._source._then(ProcessorGraphNode(child, PassThroughOperator()), below=self._node)
        chosen = branch if using is None else using(branch)
        if chosen is not None:
            self._branches[child] = chosen

    def _check_open(self) -> None:
        if self._is_complete:
            raise OptionError(f"split {self._node.name} already has its default branch", hint="add branches before it")
