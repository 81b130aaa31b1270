"""The configuration of a scenario as a StreamsConfig, and the handlers that its words stand for."""

from __future__ import annotations

from typing import Any, Literal

from tests.conformance import extractors, specs
from tests.conformance.kit import Json

import streamfleet as sf


class DropUnsendable(sf.ProductionHandler):
    """`continue` for production: the recordings had a handler that loses the record and writes no dead letter."""

    def handle(self, context: Any, record: Any, error: Exception) -> sf.HandlerResponse:
        return sf.HandlerResponse.CONTINUE

    def handle_serialization_error(
        self, context: Any, record: Any, error: Exception, origin: Literal["key", "value"]
    ) -> sf.HandlerResponse:
        return sf.HandlerResponse.CONTINUE


def config(settings: dict[str, Json], *, deduplicate: bool) -> sf.StreamsConfig:
    """The scenario's settings plus `changelog.deduplicate`, which only this engine has."""
    typed = {name: _setting(name, value) for name, value in settings.items()}
    return sf.StreamsConfig.from_mapping({**typed, "changelog.deduplicate": deduplicate})


def _setting(name: str, value: Json) -> Any:
    if name in ("default.key.serde", "default.value.serde"):
        return specs.serde(value)
    if name == "default.timestamp.extractor":
        return extractors.extractor(value)
    if name == "production.exception.handler" and value == "continue":
        return DropUnsendable()
    return value
