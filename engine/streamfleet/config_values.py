"""Settings that are more than a number or a word: how their text is read. Called by config.py; each raises ValueError with what
would have been right.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

MAX_TAGS = 5
MAX_TAG_NAME = 20
MAX_TAG_VALUE = 30
"""They travel in every report of every member, so they are kept short. The limits are Kafka Streams'."""
MAX_PORT = 65_535


NOT_HERE = {
    "enable.transactional.statestores": "state is always transactional here, with either guarantee",
    "upgrade.from": "all versions of this engine speak to each other, so there is no older protocol to fall back to",
    "rocksdb.config.setter": "it names a Java class; memory is set by rocksdb.memory.max.bytes",
    "default.client.supplier": "it names a Java class; settings of the clients begin with consumer., producer. or admin.",
    "metrics.recording.level": "all metrics are always recorded, they are few",
    "built.in.metrics.version": "metrics have one version",
}
"""Settings of Kafka Streams that somebody may bring along, and why there is nothing to set."""

OPTIMIZATIONS = ("reuse.ktable.source.topics", "merge.repartition.topics", "single.store.self.join")


def optimization(value: Any) -> str:
    """`none`, `all`, or some of the optimizations, separated by commas."""
    words = [word.strip() for word in str(value).split(",")]
    if words not in (["none"], ["all"]) and not set(words) <= set(OPTIMIZATIONS):
        raise ValueError(f"expected none, all, or some of {', '.join(OPTIMIZATIONS)}")
    return ",".join(words)


def host_and_port(value: Any) -> str | None:
    """`host:port`, with brackets around an IPv6 address."""
    if value is None:
        return None
    host, _, port = str(value).rpartition(":")
    plain = host.removeprefix("[").removesuffix("]")
    if not plain or (":" in plain) != host.startswith("[") or not port.isascii() or not port.isdecimal():
        raise ValueError("expected host:port")
    if not 0 < int(port) <= MAX_PORT:
        raise ValueError(f"expected a port from 1 to {MAX_PORT}")
    return str(value)


def tag_names(value: Any) -> tuple[str, ...]:
    """`zone,cluster` as text, or the names one by one."""
    parts = value.split(",") if isinstance(value, str) else value
    names = tuple(part.strip() for part in parts if part.strip())
    if len(names) > MAX_TAGS or len(set(names)) < len(names):
        raise ValueError(f"expected at most {MAX_TAGS} names of tags, each once")
    return names


def store_epochs(value: Any) -> dict[str, int]:
    """`store:1,other:2` as text, or a mapping."""
    pairs = value if isinstance(value, Mapping) else dict(_pair(part) for part in str(value).split(",") if part.strip())
    epochs = {str(store): int(epoch) for store, epoch in pairs.items()}
    if any(not store or epoch < 0 for store, epoch in epochs.items()):
        raise ValueError("expected store:number,store:number with numbers from 0")
    return epochs


def _pair(text: str) -> tuple[str, str]:
    store, _, epoch = text.strip().rpartition(":")
    return store, epoch


def client_tags(value: Mapping[str, Any]) -> dict[str, str]:
    tags = {str(name): str(text) for name, text in value.items()}
    if len(tags) > MAX_TAGS:
        raise ValueError(f"expected at most {MAX_TAGS} tags")
    for name, text in tags.items():
        if not 0 < len(name) <= MAX_TAG_NAME or not 0 < len(text) <= MAX_TAG_VALUE:
            raise ValueError(
                f"expected names of at most {MAX_TAG_NAME} and values of at most {MAX_TAG_VALUE} characters"
            )
    return tags


def task_assignor(value: Any) -> Any:
    """A word, `module:attribute`, or the assignor itself. It is looked up when the app starts."""
    if isinstance(value, str):
        module, _, attribute = value.partition(":")
        if value not in ("high_availability", "sticky") and not (module and attribute):
            raise ValueError("expected high_availability, sticky or module:attribute")
    elif value is not None and not hasattr(value, "assign"):
        raise ValueError("expected high_availability, sticky, module:attribute or an object with assign()")
    return value


def processor_wrapper(value: Any) -> Any:
    """`module:attribute`, imported and, if it is a class, called; or the wrapper itself."""
    wanted = "expected a ProcessorWrapper, or module:attribute of one"
    if isinstance(value, str):
        module, _, attribute = value.partition(":")
        try:
            value = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError, ValueError) as error:
            raise ValueError(f"{wanted} ({error})") from error
    if value is not None and not hasattr(value, "wrap"):
        raise ValueError(wanted)
    return value() if isinstance(value, type) else value
