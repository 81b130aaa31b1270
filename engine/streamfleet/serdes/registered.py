"""Avro and Protobuf with a Schema Registry, in Confluent's framing, through confluent-kafka: bytes as Java's serdes write them.

Needs the extra `avro` or `protobuf`. Nothing connects where a serde is declared: the registry is asked with the first record, and
each schema once. Schemas are registered by topic: `orders-value`, and for a store its changelog's name, as in Java.

A registry that does not answer is no fault of the record: SerdeUnavailableError, which no handler is asked about, so that an outage
never drops records that are fine.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from streamfleet.errors import ConfigError, SerdeUnavailableError

T = TypeVar("T")

_CLIENT_ERRORS = range(400, 500)
_WAIT_AND_TRY_AGAIN = frozenset({401, 403, 408, 429})
"""Answers that are about us or about now, and not about the schema."""

_clients: dict[str, Any] = {}
"""One client per registry and process: it keeps connections and the schemas it has seen."""


class RegisteredSerde(Generic[T]):
    """Around a serializer and a deserializer of confluent-kafka, which are made with the first record."""

    def __init__(
        self,
        name: str,
        schema: Any,
        registry: Any,
        make: Callable[[Any], tuple[Callable[..., Any], Callable[..., Any]]],
        *,
        is_key: bool,
    ) -> None:
        self.id = name
        self.schema = schema
        """For the topology lock: what is compared between two versions of an app."""
        self._registry = registry
        self._make = make
        self._is_key = is_key
        self._pair: tuple[Callable[..., Any], Callable[..., Any]] | None = None
        self._contexts: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"{self.id}()"

    def serialize(self, topic: str, value: T | None) -> bytes | None:
        if value is None:
            return None
        data = self._asked(0, topic, value, f"{self!r} cannot write {_short(value)} ({type(value).__name__})")
        return bytes(data)

    def deserialize(self, topic: str, data: bytes | None) -> T | None:
        if data is None:
            return None
        value: T = self._asked(1, topic, data, f"{self!r} cannot read {data[:64]!r}")
        return value

    def _asked(self, side: int, topic: str, given: Any, fact: str) -> Any:
        context = self._contexts.get(topic)
        if context is None:
            context = self._context_of(topic)
        assert self._pair is not None
        try:
            return self._pair[side](given, context)
        except Exception as error:
            if _is_away(error):
                raise SerdeUnavailableError(
                    f"the schema registry does not answer {self!r} for topic {topic}: {_cause(error)}",
                    hint="check schema.registry and its credentials; nothing is lost, the record is processed again",
                ) from error
            raise ValueError(f"{fact}: {_cause(error)}") from error

    def _context_of(self, topic: str) -> Any:
        from confluent_kafka.serialization import MessageField, SerializationContext

        if self._pair is None:
            self._pair = self._make(_client_of(self._registry))
        context = SerializationContext(topic, MessageField.KEY if self._is_key else MessageField.VALUE)
        self._contexts[topic] = context
        return context


def avro(
    schema: str | Mapping[str, Any],
    *,
    registry: Any,
    is_key: bool = False,
    to_dict: Callable[[Any], Mapping[str, Any]] | None = None,
    from_dict: Callable[[Mapping[str, Any]], Any] | None = None,
    config: Mapping[str, Any] | None = None,
) -> RegisteredSerde[Any]:
    """Avro records of this schema; values are dicts, or what `from_dict` makes of them.

    `registry` is its address, a mapping of client settings, or a SchemaRegistryClient; `config` has settings of the serializer
    (such as `auto.register.schemas`). What others wrote with an older or newer schema is read as this one (schema resolution).
    """
    _needs("confluent_kafka.schema_registry.avro", "avro")
    parsed = _parsed(schema)
    text = json.dumps(parsed)

    def make(client: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
        from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer

        out = None if to_dict is None else lambda value, _context: to_dict(value)
        into = None if from_dict is None else lambda value, _context: from_dict(value)
        return AvroSerializer(client, text, out, dict(config or {})), AvroDeserializer(client, text, into)

    return RegisteredSerde("avro", parsed, registry, make, is_key=is_key)


def protobuf(
    message: type[T], *, registry: Any, is_key: bool = False, config: Mapping[str, Any] | None = None
) -> RegisteredSerde[T]:
    """Messages of this generated class. `registry` and `config` as for `avro`."""
    _needs("confluent_kafka.schema_registry.protobuf", "protobuf")
    descriptor = getattr(message, "DESCRIPTOR", None)
    if descriptor is None:
        raise ConfigError(
            f"{message!r} is not a Protobuf message class", hint="pass the class that protoc generated, not an instance"
        )

    def make(client: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
        from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer

        settings = {"use.deprecated.format": False}
        writer = ProtobufSerializer(message, client, {**settings, **(config or {})})
        return writer, ProtobufDeserializer(message, settings, client)

    return RegisteredSerde("protobuf", _message_schema(descriptor), registry, make, is_key=is_key)


def _parsed(schema: str | Mapping[str, Any]) -> Any:
    if not isinstance(schema, str):
        return dict(schema)
    try:
        return json.loads(schema)
    except ValueError as error:
        raise ConfigError(f"the Avro schema is no JSON: {error}", hint="pass its JSON text, or a dict") from error


def _message_schema(descriptor: Any) -> dict[str, Any]:
    """In the shape of a JSON Schema, which the topology diff can name fields of."""
    fields = {field.name: {"type": f"{field.type}#{field.number}"} for field in descriptor.fields}
    return {"title": descriptor.full_name, "properties": fields}


def _client_of(registry: Any) -> Any:
    from confluent_kafka.schema_registry import SchemaRegistryClient

    if not isinstance(registry, str | Mapping):
        return registry
    settings = {"url": registry} if isinstance(registry, str) else dict(registry)
    known = json.dumps(settings, sort_keys=True, default=str)
    if known not in _clients:
        _clients[known] = SchemaRegistryClient.new_client(settings)
    return _clients[known]


def _is_away(error: BaseException) -> bool:
    """Whether it is the registry's fault: no answer, a broken one, or one that refuses us and not the schema."""
    from confluent_kafka.schema_registry.error import SchemaRegistryError

    for cause in _causes(error):
        if isinstance(cause, SchemaRegistryError):
            status = cause.http_status_code
            return status not in _CLIENT_ERRORS or status in _WAIT_AND_TRY_AGAIN
        if isinstance(cause, OSError) or type(cause).__module__.split(".")[0] in ("httpx", "httpx2", "httpcore"):
            return True
    return False


def _causes(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    following: BaseException | None = error
    while following is not None and following not in found:
        found.append(following)
        following = following.__cause__ or following.__context__
    return found


def _cause(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


def _needs(module: str, extra: str) -> None:
    from importlib import import_module

    try:
        import_module(module)
    except ImportError as error:
        raise ConfigError(
            f"{extra} serdes need packages that are not installed: {error}", hint=f"pip install 'streamfleet[{extra}]'"
        ) from error
