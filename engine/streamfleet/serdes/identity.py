"""What a serde is, as a value that can be written down and compared: an id for its encoding, a fingerprint for its schema.

Read by topology/lock.py. Another id means that old bytes cannot be read. Another fingerprint means that they may be read with
other fields: the fields say which. A serde of a user's own is known by its class, unless it has an attribute `id`; if it has an
attribute `schema` (text, or something JSON can hold), that gives its fingerprint.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import msgspec

from streamfleet.serdes.structured import StructuredSerde


def identity(serde: Any) -> dict[str, Any] | None:
    """`id`, and where there is a schema `fingerprint` and `fields`. None for a serde that is left to the configured default."""
    if serde is None:
        return None
    found: dict[str, Any] = {"id": serde_id(serde)}
    schema = _schema(serde)
    if schema is not None:
        canonical = json.dumps(schema, sort_keys=True, separators=(",", ":"), default=str)
        found["fingerprint"] = hashlib.sha256(canonical.encode()).hexdigest()[:16]
        if fields := _fields(schema):
            found["fields"] = fields
    return found


def serde_id(serde: Any) -> str:
    """`string`, `json`, `windowed(string)`, or the name of a class."""
    given = getattr(serde, "id", None) or getattr(serde, "name", None)
    if not isinstance(given, str):
        kind = type(serde)
        given = f"{kind.__module__}.{kind.__qualname__}"
    inners = _inners(serde)
    return f"{given}({', '.join('default' if one is None else serde_id(one) for one in inners)})" if inners else given


def _inners(serde: Any) -> tuple[Any, ...]:
    """What a serde is wrapped around: `inner`, or `inners` where there are several or one may be left to the default."""
    inner = getattr(serde, "inner", None)
    return tuple(getattr(serde, "inners", ())) if inner is None else (inner,)


def _schema(serde: Any) -> Any:
    if isinstance(serde, StructuredSerde):
        return None if serde.type is Any else _schema_of_type(serde.type)
    inners = _inners(serde)
    if not inners:
        return getattr(serde, "schema", None)
    schemas = [None if inner is None else _schema(inner) for inner in inners]
    return schemas[0] if len(schemas) == 1 else schemas if any(schemas) else None


def _schema_of_type(of: Any) -> Any:
    try:
        return _without_prose(msgspec.json.schema(of))
    except TypeError:  # it has a part that only hooks of the serde can write
        return {"type": f"{getattr(of, '__module__', '')}.{getattr(of, '__qualname__', of)}"}


def _without_prose(schema: Any) -> Any:
    """Docstrings and titles do not change what is written."""
    if isinstance(schema, dict):
        return {key: _without_prose(value) for key, value in schema.items() if not _is_prose(key, value)}
    return [_without_prose(item) for item in schema] if isinstance(schema, list) else schema


def _is_prose(key: str, value: Any) -> bool:
    """A field may be called `title` too; its schema is a mapping."""
    return key in ("description", "title") and isinstance(value, str)


def _fields(schema: Any) -> dict[str, str]:
    """Names and kinds of the outermost fields."""
    if not isinstance(schema, dict):
        return {}
    reference = schema.get("$ref")
    if isinstance(reference, str):
        schema = schema.get("$defs", {}).get(reference.rpartition("/")[2], {})
    if isinstance(schema.get("fields"), list):  # Avro's
        return {field["name"]: _avro_kind(field.get("type")) for field in sorted(schema["fields"], key=_name)}
    properties = schema.get("properties", {})
    return {name: _kind(of) for name, of in sorted(properties.items())} if isinstance(properties, dict) else {}


def _name(field: Any) -> str:
    return str(field["name"])


def _avro_kind(of: Any) -> str:
    if isinstance(of, list):
        return " or ".join(_avro_kind(choice) for choice in of)
    return str(of.get("name", of.get("type", "any"))) if isinstance(of, dict) else str(of)


def _kind(field: Any) -> str:
    if "$ref" in field:
        return str(field["$ref"]).rpartition("/")[2]
    if "anyOf" in field:
        return " or ".join(sorted(_kind(choice) for choice in field["anyOf"]))
    return str(field.get("type", "any"))
