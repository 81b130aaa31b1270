from __future__ import annotations

from streamfleet.processor.handlers import (
    ContinueProduction,
    FailProduction,
    LogAndContinueDeserialization,
    LogAndContinueProcessing,
    LogAndFailDeserialization,
    LogAndFailProcessing,
)
from streamfleet.task.handlers import ErrorHandlers


def test_everything_fails_by_default(config):
    handlers = ErrorHandlers.of(config)
    assert isinstance(handlers.deserialization, LogAndFailDeserialization)
    assert isinstance(handlers.processing, LogAndFailProcessing)
    assert isinstance(handlers.production, FailProduction)


def test_the_word_continue_stands_for_the_built_in_handlers(config):
    words = {"deserialization_handler": "continue", "processing_handler": "continue", "production_handler": "continue"}
    handlers = ErrorHandlers.of(config.with_(**words))
    assert isinstance(handlers.deserialization, LogAndContinueDeserialization)
    assert isinstance(handlers.processing, LogAndContinueProcessing)
    assert isinstance(handlers.production, ContinueProduction)


def test_handler_object_is_used_as_it_is(config):
    handler = LogAndContinueProcessing()
    assert ErrorHandlers.of(config.with_(processing_handler=handler)).processing is handler
