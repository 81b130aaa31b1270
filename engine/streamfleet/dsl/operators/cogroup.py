"""The table of several streams aggregated together: where the results of their aggregations meet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streamfleet.dsl.operators.table_view import AnyProcessor, TableOperator, TableView
from streamfleet.records import Record


class CogroupMergeOperator(TableOperator):
    """The aggregations share one store, so each of them can tell how the table is read."""

    def __init__(self, aggregations: Sequence[TableOperator]) -> None:
        self._aggregations = aggregations

    def __call__(self) -> AnyProcessor:
        return _PassOn()

    def enable_sending_old_values(self, *, force: bool) -> bool:
        asked = [each.enable_sending_old_values(force=force) for each in self._aggregations]
        self.send_old_values = all(asked)
        return self.send_old_values

    def view(self) -> TableView:
        return self._aggregations[0].view()


class _PassOn(AnyProcessor):
    def process(self, record: Record[Any, Any]) -> None:
        self.context.forward(record)
