"""Bytes to values at a source, with the deserialization handler's vote. Called by record queues and by the
GlobalTask.
"""

from __future__ import annotations

from typing import Any

import structlog

from streamfleet.compiler.failures import checked_answer
from streamfleet.compiler.interpreter import serde_of
from streamfleet.compiler.program import TaskEnvironment
from streamfleet.errors import DeserializationError, TaskInterruptedError
from streamfleet.processor.handlers import (
    DeserializationHandler,
    ErrorContext,
    HandlerResponse,
    HandlerResult,
)
from streamfleet.records import RawRecord
from streamfleet.serdes.direct import DirectUse, reader
from streamfleet.topology.nodes import SourceNode

log = structlog.get_logger(__name__)


class RecordDeserializer:
    """The serdes of one source. A null key or value stays None and is not shown to the serde."""

    def __init__(self, source: SourceNode, environment: TaskEnvironment, handler: DeserializationHandler) -> None:
        self._source = source
        self._environment = environment
        self._handler = handler
        self._key_serde, self._value_serde = (
            serde_of(source, "key", environment),
            serde_of(source, "value", environment),
        )

    def readers(self, topic: str) -> tuple[DirectUse, DirectUse]:
        """Of keys and of values, for who reads many records of one topic."""
        return reader(self._key_serde, topic), reader(self._value_serde, topic)

    def deserialize(self, raw: RawRecord) -> tuple[Any, Any] | None:
        """Key and value; None if the record cannot be read and is to be left out; then it has been counted."""
        part = "key"
        try:
            key = None if raw.key is None else self._key_serde.deserialize(raw.topic, raw.key)
            part = "value"
            value = None if raw.value is None else self._value_serde.deserialize(raw.topic, raw.value)
        except (TaskInterruptedError, MemoryError):
            raise  # what the serde asks is away, or there is no memory: the record may be fine
        except Exception as error:
            self.leave_out(raw, part, error)
            return None
        return key, value

    def leave_out(self, raw: RawRecord, part: str, error: Exception) -> None:
        """Raises if the handler does not agree."""
        operator = self._source.name
        result = self._ask(raw, error)
        self._environment.sender.send_dead_letters(operator, result.dead_letters)
        if result.response is not HandlerResponse.CONTINUE:
            raise self._error(
                raw,
                f"the {part} of an input record does not fit the source's {part} serde: {error}",
                f"check {part}_serde of the source, or set deserialization.exception.handler to leave such records out",
            ) from error
        log.warning("record dropped after a deserialization error", operator=operator, part=part, error=repr(error))
        self._environment.drop(operator, "deserialization error")

    def _ask(self, raw: RawRecord, error: Exception) -> HandlerResult:
        context = ErrorContext(
            self._source.name,
            self._environment.task_id,
            raw.topic,
            raw.partition,
            raw.offset,
            raw.timestamp,
            raw.headers,
            raw.key,
            raw.value,
            self._environment.config.dead_letter_topic,
        )
        try:
            return checked_answer(self._handler.handle(context, raw, error))
        except Exception as handler_error:
            handler_error.add_note(f"raised while handling: {error!r}")
            name = type(self._handler).__qualname__
            raise self._error(
                raw,
                f"the deserialization handler {name} raised {handler_error!r}",
                "a handler must answer with a HandlerResponse or a HandlerResult",
            ) from handler_error

    def _error(self, raw: RawRecord, fact: str, hint: str) -> DeserializationError:
        return DeserializationError(
            fact, operator=self._source.name, topic=raw.topic, partition=raw.partition, offset=raw.offset, hint=hint
        )
