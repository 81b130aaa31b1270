"""A configuration file becomes a StreamsConfig: YAML, flat, with Kafka's dotted names.

    application.id: word-count
    bootstrap.servers: localhost:9092
    default.value.serde: string
    sasl.password: ${KAFKA_PASSWORD}

What code would write as an object is written as a name here (serdes, timestamp extractors), and `${NAME}` stands for an
environment variable, so that secrets need not be in the file. The settings themselves, and what they may be, are in
config.py.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import Any

import yaml

from streamfleet import serdes
from streamfleet.config import StreamsConfig
from streamfleet.errors import ConfigError
from streamfleet.kafka.client_settings import ClientSettings
from streamfleet.processor import timestamps

SERDES: Mapping[str, Callable[[], Any]] = {
    "boolean": serdes.boolean,
    "bytes": serdes.bytes,
    "double": serdes.double,
    "float": serdes.float_,
    "integer": serdes.integer,
    "json": serdes.json,
    "long": serdes.long,
    "msgpack": serdes.msgpack,
    "short": serdes.short,
    "string": serdes.string,
    "uuid": serdes.uuid,
    "void": serdes.void,
}
EXTRACTORS: Mapping[str, Callable[[], Any]] = {
    "FailOnInvalidTimestamp": timestamps.FailOnInvalidTimestamp,
    "LogAndSkipOnInvalidTimestamp": timestamps.LogAndSkipOnInvalidTimestamp,
    "SkipFutureTimestamp": timestamps.SkipFutureTimestamp,
    "UsePartitionTimeOnInvalidTimestamp": timestamps.UsePartitionTimeOnInvalidTimestamp,
    "WallclockTimestampExtractor": timestamps.WallclockTimestampExtractor,
}
NAMED_OBJECTS = {
    "default.key.serde": SERDES,
    "default.value.serde": SERDES,
    "default.timestamp.extractor": EXTRACTORS,
}

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class _Loader(yaml.SafeLoader):
    """Refuses a key that is there twice: YAML would silently take the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen:
                raise ConfigError(
                    f"setting {key.value!r} is there twice, again in line {key.start_mark.line + 1}", hint="keep one"
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def load_config(
    path: Path, *, state_dir: Path | None = None, environment: Mapping[str, str] | None = None
) -> StreamsConfig:
    """The app's configuration; a state directory given here wins over the file's."""
    settings = parse_settings(_read(path), os.environ if environment is None else environment)
    if state_dir is not None:
        settings["state.dir"] = state_dir
    return StreamsConfig.from_mapping(settings)


def parse_settings(text: str, environment: Mapping[str, str]) -> dict[str, Any]:
    """Names and values as StreamsConfig.from_mapping takes them."""
    try:
        # The loader is a SafeLoader: plain values only.
        document = yaml.load(text, Loader=_Loader)  # noqa: S506
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f" (line {mark.line + 1})"
        detail = getattr(error, "problem", None) or "it is no YAML"
        raise ConfigError(
            f"the configuration cannot be read: {detail}{where}", hint="write name: value lines"
        ) from error
    if not isinstance(document, dict):
        raise ConfigError(
            "the configuration has no settings", hint="write name: value lines, such as application.id: orders"
        )
    return {str(name): _value(str(name), value, environment) for name, value in document.items()}


def check_setting(name: str, value: Any) -> None:
    """Raises ConfigError unless a file may say this. For tools that hold settings but not the rest of a configuration."""
    if name == "application.id":
        StreamsConfig(application_id=_value(name, value, {}))
        return
    config = StreamsConfig.from_mapping({"application.id": "any", name: _value(name, value, {})})
    ClientSettings.from_mapping({"bootstrap.servers": "any:1", **config.client_settings})


def _value(name: str, value: Any, environment: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        inner = next(iter(value), "...")
        raise ConfigError(f"setting {name} is a group of settings", hint=f"write it flat, as {name}.{inner}: value")
    if not isinstance(value, str | int | float | bool):
        raise ConfigError(
            f"setting {name} is not one text or number", hint="write a single value, in quotes if it is text"
        )
    if not isinstance(value, str):
        return value
    text = _VARIABLE.sub(lambda match: _variable(name, match[1], environment), value)
    known = NAMED_OBJECTS.get(name)
    if known is None:
        return text
    if text not in known:
        raise ConfigError(
            f"setting {name} cannot be {text!r}", hint=f"in a file it is one of {', '.join(sorted(known))}"
        )
    return known[text]()


def _variable(setting: str, variable: str, environment: Mapping[str, str]) -> str:
    if variable not in environment:
        raise ConfigError(
            f"setting {setting} wants the environment variable {variable}, which is not set",
            hint="set it and start again",
        )
    return environment[variable]


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise ConfigError(
            f"the configuration {path} cannot be read: {error.strerror or error}", hint="check --config"
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"the configuration {path} is not UTF-8 text", hint="save it as UTF-8") from error
