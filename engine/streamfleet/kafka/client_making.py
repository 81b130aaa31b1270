"""Makes librdkafka's clients out of settings: routes their log lines, and turns a value they refuse into a ConfigError."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException

from streamfleet.errors import ConfigError
from streamfleet.kafka.client_log import client_logger

C = TypeVar("C")


def make_client(kind: Callable[..., C], settings: Mapping[str, Any], **callbacks: Callable[..., None]) -> C:
    """`kind` is the class of the client; callbacks go by librdkafka's names (`error_cb`, `stats_cb`)."""
    try:
        return kind({**settings, **callbacks, "logger": client_logger})
    except KafkaException as error:
        detail = error.args[0].str() if error.args and isinstance(error.args[0], KafkaError) else str(error)
        raise ConfigError(
            f"the Kafka client refused its settings: {detail}", hint="fix the setting it names"
        ) from error
