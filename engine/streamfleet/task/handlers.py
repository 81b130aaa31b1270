"""The three error handlers of a configuration as objects: the words "fail" and "continue" stand for the built-in
ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamfleet.processor.handlers import (
    ContinueProduction,
    DeserializationHandler,
    FailProduction,
    LogAndContinueDeserialization,
    LogAndContinueProcessing,
    LogAndFailDeserialization,
    LogAndFailProcessing,
    ProcessingHandler,
    ProductionHandler,
)

if TYPE_CHECKING:
    from streamfleet.config import StreamsConfig


@dataclass(frozen=True)
class ErrorHandlers:
    """Who is asked about records that cannot be read, processed or sent."""

    deserialization: DeserializationHandler
    processing: ProcessingHandler
    production: ProductionHandler

    @classmethod
    def of(cls, config: StreamsConfig) -> ErrorHandlers:
        return cls(
            _deserialization(config.deserialization_handler),
            _processing(config.processing_handler),
            _production(config.production_handler),
        )


def _deserialization(handler: DeserializationHandler | str) -> DeserializationHandler:
    if isinstance(handler, str):
        return LogAndContinueDeserialization() if handler == "continue" else LogAndFailDeserialization()
    return handler


def _processing(handler: ProcessingHandler | str) -> ProcessingHandler:
    if isinstance(handler, str):
        return LogAndContinueProcessing() if handler == "continue" else LogAndFailProcessing()
    return handler


def _production(handler: ProductionHandler | str) -> ProductionHandler:
    if isinstance(handler, str):
        return ContinueProduction() if handler == "continue" else FailProduction()
    return handler
