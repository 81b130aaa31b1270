"""What happens when user code raises: the processing handler is asked, and its answer carried out.

Every node of the interpreter reports here what its processor raised, and so do punctuators. The innermost node is
asked first and alone: an error that a handler has answered with FAIL is passed on untouched by the nodes above, and so
is one that is not about the record (TaskInterruptedError, no memory left): leaving the record out would only lose it. An
error that says already which record and sink it is about (a result that cannot be sent) stays as it is, one of a store that a
value does not fit is told the operator and the record; any other is wrapped into a ProcessingError.
"""

from __future__ import annotations

from typing import Any

import structlog

from streamfleet.compiler.program import TaskEnvironment
from streamfleet.errors import ProcessingError, ProductionError, SinkFunctionError, TaskInterruptedError
from streamfleet.processor.handlers import Answer, ErrorContext, HandlerResponse, HandlerResult, as_result
from streamfleet.records import NO_TIMESTAMP, Record, RecordContext

log = structlog.get_logger(__name__)

_CONTEXT = "_streamfleet_record_context"

HINT = "fix the operator, or set processing.exception.handler to leave such records out"


def remember_context(error: Exception, record: RecordContext) -> None:
    """Of an error about a record that an operator had held back: it is handled where another record is under way again."""
    if not hasattr(error, _CONTEXT):
        setattr(error, _CONTEXT, record)


def error_context(environment: TaskEnvironment, operator: str, record: RecordContext | None = None) -> ErrorContext:
    """What an error handler is told of the record under way, or of the given one."""
    task_id, dead_letter_topic = environment.task_id, environment.config.dead_letter_topic
    record = record or environment.record_context
    if record is None:
        return ErrorContext(operator, task_id, None, -1, -1, NO_TIMESTAMP, (), None, None, dead_letter_topic)
    return ErrorContext(
        operator,
        task_id,
        record.topic or None,
        record.partition,
        record.offset,
        record.timestamp,
        record.headers,
        record.key,
        record.value,
        dead_letter_topic,
    )


def where(record: RecordContext | None) -> dict[str, Any]:
    """The place of the input record under way, as keywords of a RecordError; nothing in a punctuator."""
    if record is None or not record.topic:
        return {}
    return {"topic": record.topic, "partition": record.partition, "offset": record.offset}


def checked_answer(answer: Answer) -> HandlerResult:
    """The answer of a user's handler; a handler that forgot to answer must not pass for one that said FAIL."""
    result = as_result(answer)
    if not isinstance(result.response, HandlerResponse):
        raise TypeError(f"expected a HandlerResponse or a HandlerResult as answer, got {answer!r}")
    return result


class ProcessingFailures:
    """Decides about errors of operators and punctuators, for one task."""

    __slots__ = ("_decided", "_environment")

    def __init__(self, environment: TaskEnvironment) -> None:
        self._environment = environment
        self._decided: BaseException | None = None

    def handle(self, operator: str, record: Record[Any, Any] | None, error: Exception) -> None:
        """Return if the record is to be left out, raise if the task is to fail."""
        if error is self._decided or isinstance(error, TaskInterruptedError | MemoryError):
            raise error
        result = self._ask(operator, record, error)
        self._environment.sender.send_dead_letters(operator, result.dead_letters)
        if result.response is HandlerResponse.CONTINUE:
            log.warning("record dropped after a processing error", operator=operator, error=repr(error))
            self._environment.drop(operator, "processing error")
            return
        self._fail(operator, record, error)

    def _ask(self, operator: str, record: Record[Any, Any] | None, error: Exception) -> HandlerResult:
        handler, context = self._environment.processing_handler, self._context_of(error)
        cause = error.__cause__ if isinstance(error, SinkFunctionError) else None
        shown = cause if isinstance(cause, Exception) else error
        try:
            return checked_answer(handler.handle(error_context(self._environment, operator, context), record, shown))
        except Exception as handler_error:
            handler_error.add_note(f"raised while handling: {error!r}")
            failure = ProcessingError(
                f"the processing handler {type(handler).__qualname__} raised {handler_error!r}",
                operator=operator,
                hint="a handler must answer with a HandlerResponse or a HandlerResult",
                **where(context),
            )
            self._decided = failure
            raise failure from handler_error

    def _fail(self, operator: str, record: Record[Any, Any] | None, error: Exception) -> None:
        if isinstance(error, ProductionError):
            if error.operator is None:  # a store refused something, and knows neither operator nor record
                place = where(self._context_of(error))
                told = type(error)(error.fact, operator=operator, hint=error.hint, **place)
                self._decided = told
                raise told from error
            self._decided = error
            raise error
        what = "punctuator" if record is None else "operator"
        failure = ProcessingError(
            f"{what} raised {type(error).__qualname__}: {error}",
            operator=operator,
            hint=HINT,
            **where(self._context_of(error)),
        )
        self._decided = failure
        raise failure from error

    def _context_of(self, error: Exception) -> RecordContext | None:
        context: RecordContext | None = getattr(error, _CONTEXT, self._environment.record_context)
        return context
