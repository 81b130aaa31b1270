"""What to do with a record that cannot be read, processed or sent: the handlers that vote, and the built-in ones.

A handler answers CONTINUE (leave the record out, count it), FAIL (stop the task) or, when sending, RETRY. It may also name dead
letters: records that are sent, in the same transaction, before its answer is carried out. The built-in handlers write one dead
letter when `errors.dead.letter.queue.topic.name` is set; a custom handler builds its own, for instance with `dead_letter`.
"""

from __future__ import annotations

import enum
import traceback
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

from streamfleet.ids import TaskId
from streamfleet.records import Headers, ProducerRecord, RawRecord, Record


class HandlerResponse(enum.Enum):
    CONTINUE = "continue"
    FAIL = "fail"
    RETRY = "retry"


@dataclass(frozen=True)
class HandlerResult:
    """An answer with dead letters; a bare HandlerResponse means none."""

    response: HandlerResponse
    dead_letters: tuple[ProducerRecord, ...] = ()


@dataclass(frozen=True)
class ErrorContext:
    """What was going on: the operator and the input record that led to the failure. `topic` is None in a punctuator."""

    operator: str
    task_id: TaskId
    topic: str | None
    partition: int
    offset: int
    timestamp: int
    headers: Headers
    raw_key: bytes | None
    raw_value: bytes | None
    dead_letter_topic: str | None


Answer = HandlerResponse | HandlerResult


class DeserializationHandler(ABC):
    """Asked when the key or value of an input record does not fit the source's serde."""

    @abstractmethod
    def handle(self, context: ErrorContext, record: RawRecord, error: Exception) -> Answer: ...


class ProcessingHandler(ABC):
    """Asked when an operator or punctuator raises. `record` is None in a punctuator. What was already forwarded is not undone."""

    @abstractmethod
    def handle(self, context: ErrorContext, record: Record[Any, Any] | None, error: Exception) -> Answer: ...


class ProductionHandler(ABC):
    """Asked when a record cannot be sent. CONTINUE loses that record, also if it is a changelog record."""

    @abstractmethod
    def handle(self, context: ErrorContext, record: ProducerRecord, error: Exception) -> Answer: ...

    @abstractmethod
    def handle_serialization_error(
        self,
        context: ErrorContext,
        record: Record[Any, Any],
        error: Exception,
        origin: Literal["key", "value"],
    ) -> Answer: ...


def as_result(answer: Answer) -> HandlerResult:
    return answer if isinstance(answer, HandlerResult) else HandlerResult(answer)


def dead_letter(context: ErrorContext, error: BaseException) -> tuple[ProducerRecord, ...]:
    """The input record as it was read, with headers that say what happened; nothing if no dead-letter topic is configured."""
    if context.dead_letter_topic is None:
        return ()
    facts = {
        "exception": f"{type(error).__module__}.{type(error).__qualname__}",
        "message": str(error),
        "stacktrace": "".join(traceback.format_exception(error)),
        "topic": context.topic,
        "partition": str(context.partition),
        "offset": str(context.offset),
    }
    added = tuple((f"__streams.errors.{k}", None if v is None else v.encode()) for k, v in facts.items())
    return (
        ProducerRecord(
            context.dead_letter_topic, context.raw_key, context.raw_value, context.timestamp, context.headers + added
        ),
    )


class _FixedAnswer:
    """Both built-in policies: the same answer for everything, after one dead letter."""

    response: HandlerResponse

    def handle(self, context: ErrorContext, record: Any, error: Exception) -> Answer:
        return HandlerResult(self.response, dead_letter(context, error))

    def handle_serialization_error(self, context: ErrorContext, record: Any, error: Exception, origin: str) -> Answer:
        return HandlerResult(self.response, dead_letter(context, error))


class LogAndFailDeserialization(_FixedAnswer, DeserializationHandler):
    response = HandlerResponse.FAIL


class LogAndContinueDeserialization(_FixedAnswer, DeserializationHandler):
    response = HandlerResponse.CONTINUE


class LogAndFailProcessing(_FixedAnswer, ProcessingHandler):
    response = HandlerResponse.FAIL


class LogAndContinueProcessing(_FixedAnswer, ProcessingHandler):
    response = HandlerResponse.CONTINUE


class FailProduction(_FixedAnswer, ProductionHandler):
    response = HandlerResponse.FAIL


class ContinueProduction(_FixedAnswer, ProductionHandler):
    response = HandlerResponse.CONTINUE
