"""Results out: serialize, choose partitions, send, and let the production handler decide about what cannot be sent.

Called by sinks (through the program), by stores for their changelogs (through TaskContext) and by error handlers for
dead letters. The producer behind it is a port; which partition a record without one goes to is the producer's affair.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import structlog

from streamfleet.compiler.failures import checked_answer, error_context, where
from streamfleet.compiler.program import SendParts, TaskEnvironment
from streamfleet.errors import ProductionError, SerializationError, SinkFunctionError, TaskInterruptedError
from streamfleet.ports import Producer
from streamfleet.processor.handlers import HandlerResponse, HandlerResult, ProductionHandler
from streamfleet.records import Headers, ProducerRecord, Record
from streamfleet.serdes.api import Serde, WrongTypeError
from streamfleet.serdes.direct import writer
from streamfleet.topology.nodes import StreamPartitioner

log = structlog.get_logger(__name__)

HANDLER_HINT = "a handler must answer with a HandlerResponse or a HandlerResult"


class RecordCollector:
    """RecordSender over a Producer, for one task."""

    def __init__(self, environment: TaskEnvironment, producer: Producer, handler: ProductionHandler) -> None:
        self._environment = environment
        self._producer = producer
        self._handler = handler

    def send(
        self,
        operator: str,
        topic: str,
        record: Record[Any, Any],
        key_serde: Serde[Any],
        value_serde: Serde[Any],
        partitioner: StreamPartitioner | None,
    ) -> None:
        partitions: tuple[int, ...] | None = None
        if partitioner is not None:
            partitions = self._partitions(operator, topic, record, partitioner)
            if partitions == ():
                self._environment.drop(operator, "no partition")
                return
        part: Literal["key", "value"] = "key"
        try:
            key = None if record.key is None else key_serde.serialize(topic, record.key)
            part = "value"
            value = None if record.value is None else value_serde.serialize(topic, record.value)
        except (TaskInterruptedError, MemoryError):
            raise  # what the serde asks is away, or there is no memory: the record may be fine
        except Exception as error:
            self._handle_serialization_error(operator, topic, record, part, error)
            return
        for partition in partitions or (None,):
            self.send_raw(operator, ProducerRecord(topic, key, value, record.timestamp, record.headers, partition))

    def to_topic(self, operator: str, topic: str, key_serde: Serde[Any], value_serde: Serde[Any]) -> SendParts:
        keys, values = writer(key_serde, topic), writer(value_serde, topic)
        key_bytes, value_bytes, produce = keys.call, values.call, self._producer.send

        def send(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            part: Literal["key", "value"] = "key"
            try:
                raw_key = None if key is None else key_bytes(key)
                part = "value"
                raw_value = None if value is None else value_bytes(value)
            except (TaskInterruptedError, MemoryError):
                raise  # as in send()
            except Exception as error:
                record: Record[Any, Any] = Record(key, value, timestamp, headers)
                reason = keys.reason(key, error) if part == "key" else values.reason(value, error)
                self._handle_serialization_error(operator, topic, record, part, reason)
                return
            sent = ProducerRecord(topic, raw_key, raw_value, timestamp, headers)
            try:
                produce(sent)
            except (TaskInterruptedError, MemoryError):
                raise
            except Exception as error:
                self.handle_send_error(operator, sent, error)

        return send

    def send_raw(self, operator: str, record: ProducerRecord) -> None:
        """Send bytes; `operator` (or store) is who the production handler is told about."""
        try:
            self._producer.send(record)
        except (TaskInterruptedError, MemoryError):
            raise  # the producer, the broker or the memory is at fault, not this record
        except Exception as error:
            self.handle_send_error(operator, record, error)

    def send_dead_letters(self, operator: str, records: Iterable[ProducerRecord]) -> None:
        for record in records:
            try:
                self._producer.send(record)
            except (TaskInterruptedError, MemoryError):
                raise
            except Exception as error:
                # No handler is asked: it has just been asked, and its answer was this record.
                raise self._error(
                    operator, f"a dead letter could not be sent to topic {record.topic}: {error}"
                ) from error

    def _partitions(
        self, operator: str, topic: str, record: Record[Any, Any], partitioner: StreamPartitioner
    ) -> tuple[int, ...] | None:
        """Where the record goes: None leaves it to the producer, an empty tuple means nowhere."""
        count = self._producer.partition_count(topic)
        if count is None:
            raise self._error(
                operator, f"the partitions of topic {topic} are not known", "create the topic before the app is started"
            )
        place = where(self._environment.record_context)
        try:
            chosen = partitioner(topic, record.key, record.value, count)
        except Exception as error:
            raise SinkFunctionError(
                f"the partitioner for topic {topic} raised {error!r}", operator=operator, **place
            ) from error
        try:
            partitions = None if chosen is None else tuple(sorted(set(chosen)))
        except TypeError as error:
            fact, hint = f"the partitioner for topic {topic} returned {chosen!r}", "return a list of numbers, or None"
            raise SinkFunctionError(fact, operator=operator, hint=hint, **place) from error
        if partitions and partitions[0] < 0:
            raise self._error(
                operator,
                f"the partitioner for topic {topic} returned the negative partition {partitions[0]}",
                f"return partitions from 0 to {count - 1}, or None for the default",
            )
        return partitions

    def _handle_serialization_error(
        self, operator: str, topic: str, record: Record[Any, Any], part: Literal["key", "value"], error: Exception
    ) -> None:
        if not isinstance(error, WrongTypeError):
            context = error_context(self._environment, operator)
            try:
                result = checked_answer(self._handler.handle_serialization_error(context, record, error, part))
            except Exception as handler_error:
                raise self._handler_failure(operator, error, handler_error) from handler_error
            if self._carry_out(operator, result, "serialization error", error):
                return
        actual = record.key if part == "key" else record.value
        raise SerializationError(
            f"the {part} of a record for topic {topic} is of type {type(actual).__qualname__} "
            f"and does not fit the sink's {part} serde: {error}",
            operator=operator,
            hint=f"pass {part}_serde=... where the sink is made, or set default.{part}.serde",
            **where(self._environment.record_context),
        ) from error

    def handle_send_error(self, operator: str, record: ProducerRecord, error: Exception) -> None:
        """Called for a record that the producer refused, at once or (by whoever owns the producer) later."""
        context = error_context(self._environment, operator)
        try:
            result = checked_answer(self._handler.handle(context, record, error))
        except Exception as handler_error:
            raise self._handler_failure(operator, error, handler_error) from handler_error
        if not self._carry_out(operator, result, "production error", error):
            raise self._error(
                operator,
                f"a record could not be sent to topic {record.topic}: {error}",
                "check the topic and the broker, or set production.exception.handler to leave such records out",
            ) from error

    def _carry_out(self, operator: str, result: HandlerResult, reason: str, error: Exception) -> bool:
        """True if the record is left out. RETRY fails: a record that was refused once is refused again."""
        self.send_dead_letters(operator, result.dead_letters)
        if result.response is not HandlerResponse.CONTINUE:
            return False
        log.warning("record dropped instead of being sent", operator=operator, reason=reason, error=repr(error))
        self._environment.drop(operator, reason)
        return True

    def _handler_failure(self, operator: str, error: Exception, handler_error: Exception) -> ProductionError:
        handler_error.add_note(f"raised while handling: {error!r}")
        name = type(self._handler).__qualname__
        return self._error(operator, f"the production handler {name} raised {handler_error!r}", HANDLER_HINT)

    def _error(self, operator: str, fact: str, hint: str | None = None) -> ProductionError:
        return ProductionError(fact, operator=operator, hint=hint, **where(self._environment.record_context))
