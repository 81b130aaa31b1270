"""Settings of an app become the settings of its librdkafka clients. Pure: reads a mapping, makes dicts, connects nowhere.

An app writes librdkafka's names, as Kafka Streams does with Java's: without a prefix for all clients (connection,
security), with `consumer.` for all consumers, `main.consumer.`, `restore.consumer.`, `global.consumer.` for one of
them, `producer.`, `admin.`. The narrower prefix wins, and what correctness needs wins over all: it cannot be set.
Called by whoever makes clients. The names are in librdkafka_names.py; the settings of the engine itself in config.py.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
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
_LEAST_MESSAGE_BYTES = 1000
"""librdkafka refuses a smaller message.max.bytes."""

_BATCH_HEADER_BYTES = 61
"""Counts towards a topic's limit, which is for batches, but not towards librdkafka's, which is for records."""

_CONSUMER_DEFAULTS = {
    # One fetch per broker is under way at a time: a long wait on idle partitions would delay one that was just assigned.
    "fetch.wait.max.ms": 100,
    "fetch.queue.backoff.ms": 20,
    "reconnect.backoff.max.ms": 1000,
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

    def producer(self, *, client_id: str, max_message_bytes: int | None = None) -> dict[str, Any]:
        """`max_message_bytes`: the smallest limit of the topics it will write to.

        A batch above the broker's limit fails as a whole, also the records in it that are small. With the limit known to
        the client, the one record that is too large is refused before it is in any batch.
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
        return chosen if max_message_bytes is None else chosen | _size_limits(chosen, max_message_bytes)

    def transactional_producer(
        self, *, client_id: str, transactional_id: str, max_message_bytes: int | None = None
    ) -> dict[str, Any]:
        chosen = self.producer(client_id=client_id, max_message_bytes=max_message_bytes)
        del chosen["delivery.report.only.error"]  # it would hide the offset of the last record
        asked = {**self.connection, **self.scoped["producer."]}
        defaults = {name: asked.get(name, value) for name, value in _TRANSACTION_DEFAULTS.items()}
        return {**chosen, **defaults, **_TRANSACTION_FIXED, "transactional.id": transactional_id}

    def admin(self, *, client_id: str) -> dict[str, Any]:
        return {"reconnect.backoff.max.ms": 1000, **self.connection, **self.scoped["admin."], "client.id": client_id}


def _size_limits(chosen: Mapping[str, Any], max_message_bytes: int) -> dict[str, int]:
    largest = max_message_bytes - _BATCH_HEADER_BYTES
    limit = max(min(largest, int(chosen.get("message.max.bytes", largest))), _LEAST_MESSAGE_BYTES)
    return {"message.max.bytes": limit, "batch.size": min(limit, int(chosen.get("batch.size", limit)))}


def _check_name(written: str, name: str, allowed: frozenset[str]) -> None:
    if name in ENGINE_OWNED:
        raise ConfigError(f"setting {written} cannot be chosen: {ENGINE_OWNED[name]}", hint="leave it out")
    if name in JAVA_NAMES:
        raise ConfigError(f"setting {written} belongs to the Java clients", hint=JAVA_NAMES[name])
    if name not in allowed:
        near = difflib.get_close_matches(name, sorted(allowed), n=1)
        hint = f"did you mean {written.removesuffix(name)}{near[0]}?" if near else "leave it out"
        raise ConfigError(f"unknown client setting {written!r}", hint=hint)
