"""GlobalKTable: a table of which every process holds all partitions; only good for being joined and queried."""

from __future__ import annotations

from typing import Generic, TypeVar

from streamfleet.dsl.operators.table_view import TableView, store_view

K = TypeVar("K")
V = TypeVar("V")


class GlobalKTable(Generic[K, V]):
    """All partitions of a topic as a table, in every process: streams join it by any key, and processors read its store."""

    def __init__(self, store: str, queryable_store_name: str | None) -> None:
        self._store = store
        self.queryable_store_name = queryable_store_name
        """None if the store has a generated name."""

    def view(self) -> TableView:
        """No store is connected to the reader: global stores are open to every processor."""
        return store_view(self._store)

    def __repr__(self) -> str:
        return f"GlobalKTable({self._store})"
