"""The configuration of a scenario as a StreamsConfig, and the handlers that its words stand for."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, Literal

from tests.conformance import extractors, specs
from tests.conformance.kit import Json

import streamfleet as sf


class Execution(enum.Enum):
    """How the topology runs; the values are those of `topology.execution`. No result may depend on it."""

    COMPILED = "compiled"
    INTERPRETED = "interpreted"


@dataclass(frozen=True)
class Variant:
    """The settings that only this engine has, and that a recording therefore says nothing about."""

    execution: Execution = Execution.COMPILED
    deduplicate: bool = False


class DropUnsendable(sf.ProductionHandler):
    """`continue` for production: the recordings had a handler that loses the record and writes no dead letter."""

    def handle(self, context: Any, record: Any, error: Exception) -> sf.HandlerResponse:
        return sf.HandlerResponse.CONTINUE

    def handle_serialization_error(
        self, context: Any, record: Any, error: Exception, origin: Literal["key", "value"]
    ) -> sf.HandlerResponse:
        return sf.HandlerResponse.CONTINUE


JAVA_DEFAULTS: dict[str, Json] = {"__enable.process.processValue.fix__": False}
"""Settings that a recording does not name, and whose default here is another one."""


def config(settings: dict[str, Json], variant: Variant) -> sf.StreamsConfig:
    """The scenario's settings, and those of the variant."""
    typed = {name: _setting(name, value) for name, value in (JAVA_DEFAULTS | settings).items()}
    own = {"topology.execution": variant.execution.value, "changelog.deduplicate": variant.deduplicate}
    return sf.StreamsConfig.from_mapping(typed | own)


def _setting(name: str, value: Json) -> Any:
    if name in ("default.key.serde", "default.value.serde"):
        return specs.serde(value)
    if name == "default.timestamp.extractor":
        return extractors.extractor(value)
    if name == "production.exception.handler" and value == "continue":
        return DropUnsendable()
    return value
