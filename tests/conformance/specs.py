"""The parameter objects of the scenario format as the engine's arguments: serdes, stores, windows, option objects.

Java's option objects are keyword arguments here, so each becomes a dict to be passed with `**`. Called by `ops`,
`papi_ops` and `processors`. Only what a file gives is passed on: the engine's own defaults are what is tested.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.conformance import extractors
from tests.conformance.kit import Json, MalformedScenarioError, bind

import streamfleet as sf

Options = dict[str, Any]


class RefusedTextError(ValueError):
    """Raised by the serde `string_strict`; Java raises a SerializationException with the same message."""


class StrictText:
    """UTF-8, but text with `!` cannot be written and text with `?` cannot be read."""

    immutable = True

    def serialize(self, topic: str, value: str | None) -> bytes | None:
        if value is not None and "!" in value:
            raise RefusedTextError(f"refused {value}")
        return None if value is None else value.encode()

    def deserialize(self, topic: str, data: bytes | None) -> str | None:
        found = None if data is None else data.decode()
        if found is not None and "?" in found:
            raise RefusedTextError(f"refused {found}")
        return found


_SERDES: dict[str, Callable[[], Any]] = {
    "string": sf.serdes.string,
    "long": sf.serdes.long,
    "int": sf.serdes.integer,
    "double": sf.serdes.double,
    "bytes": sf.serdes.bytes,
    "string_strict": StrictText,
}


def serde(spec: Json) -> Any:
    match spec:
        case str() if spec in _SERDES:
            return _SERDES[spec]()
        case {"time_windowed": inner, "size": int(size)}:
            return sf.serdes.windowed(serde(inner), size=size)
        case {"session_windowed": inner}:
            return sf.serdes.session_windowed(serde(inner))
    raise MalformedScenarioError(f"unknown serde {spec}")


def _renamed(spec: Mapping[str, Json], names: Mapping[str, tuple[str, Callable[[Json], Any]]]) -> Options:
    unknown = spec.keys() - names.keys()
    if unknown:
        raise MalformedScenarioError(f"unknown parameter {sorted(unknown)} in {dict(spec)}")
    return {names[field][0]: names[field][1](value) for field, value in spec.items()}


def _same(value: Json) -> Any:
    return value


def _partitions_of(expression: Json) -> Callable[[str, Any, Any, int], Any]:
    partitions = bind(expression, "k", "v")
    return lambda topic, key, value, count: partitions(key, value)


_SERDE_OPTIONS = {"key": ("key_serde", serde), "value": ("value_serde", serde)}
_NAME_OPTION = {"name": ("name", _same)}
_CONSUMED = {
    **_SERDE_OPTIONS,
    **_NAME_OPTION,
    "extractor": ("timestamp_extractor", extractors.extractor),
    "reset": ("offset_reset", _same),
}
_OPTION_OBJECTS: dict[str, Mapping[str, tuple[str, Callable[[Json], Any]]]] = {
    "consumed": _CONSUMED,
    "produced": {**_SERDE_OPTIONS, **_NAME_OPTION, "partitions_fn": ("partitioner", _partitions_of)},
    "grouped": {**_SERDE_OPTIONS, **_NAME_OPTION},
    "repartitioned": {**_SERDE_OPTIONS, **_NAME_OPTION, "partitions": ("partitions", _same)},
    "stream_joined": {
        **_NAME_OPTION,
        "store_name": ("store_name", _same),
        "key": ("key_serde", serde),
        "left": ("value_serde", serde),
        "right": ("other_value_serde", serde),
        "this_store": ("this_store", lambda spec: store(spec)),
        "other_store": ("other_store", lambda spec: store(spec)),
        "type": ("kind", _same),
        "logging": ("logging", _same),
    },
    "table_joined": _NAME_OPTION,
    "joined": {
        **_NAME_OPTION,
        "key": ("key_serde", serde),
        "left": ("value_serde", serde),
        "right": ("other_value_serde", serde),
        "grace": ("grace", _same),
    },
}


def options(op: Mapping[str, Json], *fields: str) -> Options:
    """Keyword arguments from those of the fields `named`, `materialized` and the option objects that the op has."""
    found: Options = {}
    for field in fields:
        if field not in op:
            continue
        if field == "named":
            found["name"] = op["named"]
        elif field == "materialized":
            found["materialized"] = materialized(op["materialized"])
        else:
            found |= _renamed(op[field], _OPTION_OBJECTS[field])
    return found


def materialized(spec: Mapping[str, Json]) -> sf.Materialized:
    spec = dict(spec)
    store_or_name = store(spec.pop("supplier")) if "supplier" in spec else spec.pop("store", None)
    names = {
        **_SERDE_OPTIONS,
        "caching": ("caching", _same),
        "logging": ("logging", _same),
        "retention": ("retention", _same),
        "type": ("kind", _same),
    }
    return sf.Materialized(store_or_name, **_renamed(spec, names))


def store(spec: Mapping[str, Json]) -> Any:
    """A store builder; it is what Java calls a supplier when it stands in `materialized`."""
    kind = spec["kind"]
    common = {"caching": ("caching", _same), "logging": ("logging", _same), **_SERDE_OPTIONS}
    fields = {name: value for name, value in spec.items() if name in common}
    kwargs = _renamed(fields, common)
    if "memory" in spec:
        kwargs["kind"] = "in_memory" if spec["memory"] else "rocksdb"
    name = spec["name"]
    match kind:
        case "kv":
            return sf.Stores.key_value(name, **kwargs)
        case "timestamped_kv":
            return sf.Stores.timestamped_key_value(name, **kwargs)
        case "lru":
            return sf.Stores.lru(name, spec["capacity"], **kwargs)
        case "window" | "timestamped_window":
            make = sf.Stores.window if kind == "window" else sf.Stores.timestamped_window
            if "duplicates" in spec:
                kwargs["retain_duplicates"] = spec["duplicates"]
            return make(name, spec["retention"], spec["size"], **kwargs)
        case "session":
            return sf.Stores.session(name, spec["retention"], **kwargs)
        case "versioned":
            if "segment" in spec:
                kwargs["segment_interval"] = spec["segment"]
            for option in ("caching", "kind"):
                kwargs.pop(option, None)
            return sf.Stores.versioned_key_value(name, spec["history"], **kwargs)
    raise MalformedScenarioError(f"unknown kind of store {kind}")


def suppressed(spec: Mapping[str, Json]) -> sf.Suppressed:
    """No buffer is an unbounded one; a limit alone is that of an eager buffer."""
    limits = spec.get("buffer", {})
    buffer = sf.BufferConfig.unbounded()
    if "max_records" in limits:
        buffer = buffer.with_max_records(limits["max_records"]).emit_early_when_full()
    if "max_bytes" in limits:
        buffer = buffer.with_max_bytes(limits["max_bytes"]).emit_early_when_full()
    if limits.get("when_full") == "shut_down":
        buffer = buffer.shut_down_when_full()
    if "logging" in limits:
        buffer = buffer.with_logging(limits["logging"])
    name = {"name": spec["name"]} if "name" in spec else {}
    if spec["until"] == "window_closes":
        return sf.Suppressed.until_window_closes(buffer, **name)
    return sf.Suppressed.until_time_limit(spec["ms"], buffer, **name)


def window(spec: Mapping[str, Json]) -> Any:
    """No `grace` is Java's "WithNoGrace" factory."""
    grace = spec.get("grace", 0)
    match spec["kind"]:
        case "time":
            advance = {"advance": spec["advance"]} if "advance" in spec else {}
            return sf.TimeWindows(spec["size"], grace, **advance)
        case "sliding":
            return sf.SlidingWindows(spec["diff"], grace)
        case "session":
            return sf.SessionWindows(spec["gap"], grace)
        case "unlimited":
            return sf.UnlimitedWindows(**({"start": spec["start"]} if "start" in spec else {}))
        case "join":
            return _join_windows(spec["diff"], spec, grace)
    raise MalformedScenarioError(f"unknown kind of window {spec['kind']}")


def _join_windows(diff: int, spec: Mapping[str, Json], grace: int) -> Any:
    """Java sets one side after the other, and checks what it has each time."""
    windows = sf.JoinWindows(diff, diff, grace)
    if "before" in spec:
        windows = sf.JoinWindows(spec["before"], windows.after_ms, grace)
    if "after" in spec:
        windows = sf.JoinWindows(windows.before_ms, spec["after"], grace)
    return windows
