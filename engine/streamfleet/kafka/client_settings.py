"""Settings of an app become the settings of its librdkafka clients. Pure: reads a mapping, makes dicts, connects nowhere.

An app writes librdkafka's names, as Kafka Streams does with Java's: without a prefix for all clients (connection,
security), with `consumer.` for all consumers, `main.consumer.`, `restore.consumer.`, `global.consumer.` for one of
them, `producer.`, `admin.`. The narrower prefix wins, and what correctness needs wins over all: it cannot be set.
Called by whoever makes clients. The names are in librdkafka_names.py; the settings of the engine itself in config.py.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from streamfleet.errors import ConfigError
from streamfleet.kafka.librdkafka_names import CONNECTION, CONSUMER, ENGINE_OWNED, JAVA_NAMES, PRODUCER

ConsumerRole = Literal["main", "restore", "global"]

_SCOPES = {
    "consumer.": CONNECTION | CONSUMER,
    "main.consumer.": CONNECTION | CONSUMER,
    "restore.consumer.": CONNECTION | CONSUMER,
    "global.consumer.": CONNECTION | CONSUMER,
    "producer.": CONNECTION | PRODUCER,
    "admin.": CONNECTION,
}
_NAMESPACES = ("security.", "sasl.", "ssl.", "socket.")
_NO_LIMITS: Mapping[str, int] = {}
_LEAST_MESSAGE_BYTES = 1000
"""librdkafka refuses a smaller message.max.bytes."""

_BATCH_HEADER_BYTES = 61
"""Counts towards a topic's limit, which is for batches, but not towards librdkafka's, which is for records."""

_CONSUMER_DEFAULTS = {
    # One fetch per broker is under way at a time: a long wait on idle partitions would delay one that was just assigned.
    "fetch.wait.max.ms": 100,
    "fetch.queue.backoff.ms": 20,
    "reconnect.backoff.max.ms": 1000,
    # What is fetched ahead, the first of them for each partition: a tenth of a second of work. librdkafka's 100,000 and 64 MB take
    # more memory than all else in most apps.
    "queued.min.messages": 20_000,
    "queued.max.messages.kbytes": 32_768,
}
_CONSUMER_FIXED = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    # Anything else jumps to another offset silently.
    "auto.offset.reset": "error",
    "check.crcs": True,
    "enable.partition.eof": True,
    "allow.auto.create.topics": False,
}
_PRODUCER_DEFAULTS = {
    "linger.ms": 100,
    "queue.buffering.max.messages": 1_000_000,
    "queue.buffering.max.kbytes": 131_072,
    "reconnect.backoff.max.ms": 1000,
}
_PRODUCER_FIXED = {
    "enable.idempotence": True,
    "acks": "all",
    "partitioner": "murmur2_random",
    "allow.auto.create.topics": False,
}
_DELIVERY_TIMEOUTS = ("message.timeout.ms", "delivery.timeout.ms")
_TRANSACTION_DEFAULTS = {
    # A crashed producer's open transaction hides what follows it from readers for this long, and up to 10 s more.
    "transaction.timeout.ms": 10_000,
    # The broker still writes the last transaction's markers when a busy task begins the next: 100, the default, costs
    # a transaction ten times its time.
    "retry.backoff.ms": 1,
}
_TRANSACTION_FIXED = {"statistics.interval.ms": 200}


def is_client_setting(name: str) -> bool:
    """Whether a setting of an app is meant for its Kafka clients; also if it is one that will be refused."""
    unprefixed = name in CONNECTION or name in JAVA_NAMES or name.startswith(_NAMESPACES)
    return unprefixed or name.startswith(tuple(_SCOPES))


@dataclass(frozen=True)
class ClientSettings:
    """What an app says about its clients, checked. Every method makes the complete settings of one client."""

    connection: Mapping[str, Any]
    scoped: Mapping[str, Mapping[str, Any]]

    @classmethod
    def from_mapping(cls, settings: Mapping[str, Any]) -> ClientSettings:
        """Takes client settings only: see `is_client_setting`."""
        connection: dict[str, Any] = {}
        scoped: dict[str, dict[str, Any]] = {prefix: {} for prefix in _SCOPES}
        for written, value in settings.items():
            prefix = next((prefix for prefix in _SCOPES if written.startswith(prefix)), "")
            name = written.removeprefix(prefix)
            _check_name(written, name, _SCOPES.get(prefix, CONNECTION))
            (scoped[prefix] if prefix else connection)[name] = value
        if not connection.get("bootstrap.servers"):
            raise ConfigError("bootstrap.servers is missing", hint="name at least one broker, as host:port")
        return cls(connection, scoped)

    def consumer(self, role: ConsumerRole, *, group_id: str, client_id: str, exactly_once: bool) -> dict[str, Any]:
        """Under exactly-once no consumer reads what may still be aborted."""
        return {
            **_CONSUMER_DEFAULTS,
            **self.connection,
            **self.scoped["consumer."],
            **self.scoped[f"{role}.consumer."],
            **_CONSUMER_FIXED,
            "isolation.level": "read_committed" if exactly_once else "read_uncommitted",
            "group.id": group_id,
            "client.id": client_id,
        }

    def plain_producer(
        self, *, client_id: str, delivery_timeout_ms: int, message_limits: Mapping[str, int] = _NO_LIMITS
    ) -> dict[str, Any]:
        """`delivery_timeout_ms`: a record that waits for longer must not be sent any more; a shorter time may be chosen."""
        chosen = self.producer(client_id=client_id, message_limits=message_limits)
        asked = [int(chosen.pop(name)) for name in _DELIVERY_TIMEOUTS if name in chosen]
        return {**chosen, "message.timeout.ms": min([delivery_timeout_ms, *(ms for ms in asked if ms > 0)])}

    def producer(self, *, client_id: str, message_limits: Mapping[str, int] = _NO_LIMITS) -> dict[str, Any]:
        """`message_limits`: those of the topics it will write to, as far as they are known.

        A batch above the broker's limit fails as a whole, also the records in it that are small, and the client has one size
        of batches for all topics: the smallest limit. A single record may be larger, up to the largest limit; that of its own
        topic is looked after by ProducerClient, before the record is in any batch.
        """
        chosen = {
            **_PRODUCER_DEFAULTS,
            **self.connection,
            **self.scoped["producer."],
            **_PRODUCER_FIXED,
            "delivery.report.only.error": True,
            "client.id": client_id,
        }
        chosen.pop("transaction.timeout.ms", None)
        return chosen | _size_limits(chosen, message_limits.values()) if message_limits else chosen

    def transactional_producer(
        self, *, client_id: str, transactional_id: str, message_limits: Mapping[str, int] = _NO_LIMITS
    ) -> dict[str, Any]:
        chosen = self.producer(client_id=client_id, message_limits=message_limits)
        del chosen["delivery.report.only.error"]  # it would hide the offset of the last record
        asked = {**self.connection, **self.scoped["producer."]}
        defaults = {name: asked.get(name, value) for name, value in _TRANSACTION_DEFAULTS.items()}
        return {**chosen, **defaults, **_TRANSACTION_FIXED, "transactional.id": transactional_id}

    def admin(self, *, client_id: str) -> dict[str, Any]:
        return {"reconnect.backoff.max.ms": 1000, **self.connection, **self.scoped["admin."], "client.id": client_id}


def _size_limits(chosen: Mapping[str, Any], limits: Collection[int]) -> dict[str, int]:
    largest, smallest = record_limit(max(limits)), record_limit(min(limits))
    record = min(largest, int(chosen.get("message.max.bytes", largest)))
    return {"message.max.bytes": record, "batch.size": min(smallest, record, int(chosen.get("batch.size", smallest)))}


def record_limit(max_message_bytes: int) -> int:
    """How large a record may be in a topic with this limit, which is one of batches; the client cannot do with less than some."""
    return max(max_message_bytes - _BATCH_HEADER_BYTES, _LEAST_MESSAGE_BYTES)


def _check_name(written: str, name: str, allowed: frozenset[str]) -> None:
    if name in ENGINE_OWNED:
        raise ConfigError(f"setting {written} cannot be chosen: {ENGINE_OWNED[name]}", hint="leave it out")
    if name in JAVA_NAMES:
        raise ConfigError(f"setting {written} belongs to the Java clients", hint=JAVA_NAMES[name])
    if name not in allowed:
        near = difflib.get_close_matches(name, sorted(allowed), n=1)
        hint = f"did you mean {written.removesuffix(name)}{near[0]}?" if near else "leave it out"
        raise ConfigError(f"unknown client setting {written!r}", hint=hint)
