"""QueryRows: what a query found in a store, as JSON. Used by query_pages.py."""

from __future__ import annotations

from typing import Any

from streamfleet.query.queries import AnyQuery, MultiVersionedKeyQuery, WindowKeyQuery
from streamfleet.query.store_catalogue import StoreCatalogue, StorePlace
from streamfleet.records import TimeWindow, ValueAndTimestamp, VersionedRecord, Windowed
from streamfleet.worker.query_text import to_json


class QueryRows:
    def __init__(self, catalogue: StoreCatalogue, place: StorePlace) -> None:
        self._topic = place.changelog
        self._key_serde = catalogue.key_serde(place.name)
        self._value_serde = catalogue.value_serde(place.name)
        self._window_size: int | None = getattr(place.builder, "window_size", None)

    def key(self, key: Any) -> Any:
        return to_json(self._key_serde, self._topic, key)

    def value(self, value: Any) -> dict[str, Any]:
        if isinstance(value, ValueAndTimestamp):
            return {"value": to_json(self._value_serde, self._topic, value.value), "timestamp": value.timestamp}
        if isinstance(value, VersionedRecord):
            plain = to_json(self._value_serde, self._topic, value.value)
            return {"value": plain, "valid_from": value.timestamp, "valid_to": value.valid_to}
        return {"value": to_json(self._value_serde, self._topic, value)}

    def rows(self, query: AnyQuery | None, found: list[Any], key: Any = None) -> list[dict[str, Any]]:
        if isinstance(query, MultiVersionedKeyQuery):
            found = [(key, version) for version in found]
        if isinstance(query, WindowKeyQuery):
            size = self._window_size or 0
            found = [(Windowed(key, TimeWindow(start, start + size)), value) for start, value in found]
        return [{**self._row_key(row_key), **self.value(value)} for row_key, value in found]

    def _row_key(self, key: Any) -> dict[str, Any]:
        if not isinstance(key, Windowed):
            return {"key": self.key(key)}
        return {"key": self.key(key.key), "window": {"start": key.window.start, "end": key.window.end}}
