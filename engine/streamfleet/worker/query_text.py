"""Keys and values of stores as text and JSON, by the serdes of the store. Used by the query pages; documented in docs/queries.md.

serde                       key in a path                          key or value in an answer
string, uuid                the text                               text
short, integer, long        the number                             number
float_, double              the number                             number
boolean                     true, false                            true, false
bytes                       base64url                              base64
json, msgpack               base64url of the serialized key        JSON
any other                   base64url of the serialized key        JSON if it can be, else {"base64": the serialized value}
"""

from __future__ import annotations

import base64
import binascii
import uuid
from collections.abc import Callable
from typing import Any

import msgspec

from streamfleet.serdes.api import Serde


def _boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError("expected true or false")
    return text == "true"


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError(f"expected base64url, {error}") from error


_READERS: dict[str, Callable[[str], Any]] = {
    "string": str,
    "short": int,
    "integer": int,
    "long": int,
    "float_": float,
    "double": float,
    "boolean": _boolean,
    "uuid": uuid.UUID,
    "bytes": _bytes,
}


def key_from_text(serde: Serde[Any], topic: str, text: str) -> Any:
    """Raises ValueError with what would have been right."""
    read = _READERS.get(getattr(serde, "name", ""))
    if read is not None:
        return read(text)
    try:
        return serde.deserialize(topic, _bytes(text))
    except Exception as error:
        raise ValueError(f"expected base64url of a serialized key: {error}") from error


_PLAIN = (str, int, float, bool, type(None))


def to_json(serde: Serde[Any], topic: str, value: Any) -> Any:
    """What msgspec can write as JSON."""
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    try:
        return msgspec.to_builtins(value, str_keys=True)
    except TypeError:
        return {"base64": base64.b64encode(serde.serialize(topic, value) or b"").decode("ascii")}
