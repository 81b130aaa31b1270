"""Which names there may be.

What the platform itself names (apps, application ids, clusters, tiers, inputs, outputs, secrets) follows one grammar:
lower-case letters, digits and `-` inside. It is safe in a path, a URL, a Kubernetes object and a topic, and no two
names differ only by case or by how an accent is encoded. Topics and stores are named by Kafka and by apps, and follow
Kafka's rules, without names that belong to Kafka or to the internal topics of an app.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from streamfleet_platform.model.section import refusal, shown

NAME_PATTERN = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"
TOPIC_PATTERN = r"^[a-zA-Z0-9._-]{1,249}$"
ENTRYPOINT_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_]*$"
VARIABLE_PATTERN = r"^[A-Z][A-Z0-9_]{0,127}$"
LOCK_PATTERN = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.lock\.json$"

INTERNAL_SUFFIXES = ("-changelog", "-repartition")

# `$` would also match before a newline at the end
_NAME = re.compile(NAME_PATTERN[1:-1])
_TOPIC = re.compile(TOPIC_PATTERN[1:-1])
_ENTRYPOINT = re.compile(ENTRYPOINT_PATTERN[1:-1])
_VARIABLE = re.compile(VARIABLE_PATTERN[1:-1])
_LOCK = re.compile(LOCK_PATTERN[1:-1])


def is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None


def is_variable(text: str) -> bool:
    return _VARIABLE.fullmatch(text) is not None


def _name(value: str) -> str:
    if not is_name(value):
        raise refusal(
            f"{shown(value)} is not a name",
            "use 1 to 63 lower-case letters and digits, with - inside but not at the ends",
        )
    return value


def _kafka_name(value: str, what: str) -> str:
    if _TOPIC.fullmatch(value) is None or value in (".", ".."):
        raise refusal(
            f"{shown(value)} is not the name of a {what}",
            "use 1 to 249 letters and digits, '.', '_' and '-', and not only dots",
        )
    return value


def _topic(value: str) -> str:
    _kafka_name(value, "topic")
    if value.startswith("__"):
        raise refusal(f"topic {value} belongs to Kafka", "name a topic of your own")
    if value.endswith(INTERNAL_SUFFIXES):
        raise refusal(
            f"topic {value} is named like an internal topic of an app",
            "internal topics are the engine's; write what others should read to an output",
        )
    return value


def _store(value: str) -> str:
    return _kafka_name(value, "store")


def _entrypoint(value: str) -> str:
    if len(value) > 255 or _ENTRYPOINT.fullmatch(value) is None:
        raise refusal(f"{shown(value)} is not an entry point", "write module:function, such as orders.app:topology")
    return value


def _variable(value: str) -> str:
    if not is_variable(value):
        raise refusal("this is not an environment variable", "use capitals, digits and _, such as REGISTRY_PASSWORD")
    return value


def _lock(value: str) -> str:
    if _LOCK.fullmatch(value) is None:
        raise refusal(
            f"{shown(value)} is not the name of a lock file", "it lies beside the definition: write NAME.lock.json"
        )
    return value


Name = Annotated[str, AfterValidator(_name), Field(json_schema_extra={"pattern": NAME_PATTERN})]
TopicName = Annotated[str, AfterValidator(_topic), Field(json_schema_extra={"pattern": TOPIC_PATTERN})]
StoreName = Annotated[str, AfterValidator(_store), Field(json_schema_extra={"pattern": TOPIC_PATTERN})]
Entrypoint = Annotated[str, AfterValidator(_entrypoint), Field(json_schema_extra={"pattern": ENTRYPOINT_PATTERN})]
VariableName = Annotated[str, AfterValidator(_variable), Field(json_schema_extra={"pattern": VARIABLE_PATTERN})]
LockFileName = Annotated[str, AfterValidator(_lock), Field(json_schema_extra={"pattern": LOCK_PATTERN})]
