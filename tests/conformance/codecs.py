"""How a scenario file shows keys and values: JSON to bytes for inputs, bytes to JSON for outputs.

Called by `execution`. Written apart from the engine's serdes on purpose: an encoding mistake there must show up as a
difference, and would not if both sides were rendered by the same code.
"""

from __future__ import annotations

import struct

from tests.conformance.kit import Json, MalformedScenarioError

_NUMBERS = {"long": ">q", "int": ">i", "double": ">d"}
_TEXTS = ("string", "string_strict")
_RAW = ("bytes", "hex")


def encode(serde: Json, value: Json) -> bytes | None:
    """The bytes of a JSON value; null stays null."""
    if value is None:
        return None
    try:
        return _encode(serde, value)
    except (TypeError, ValueError, AttributeError, struct.error) as error:
        raise MalformedScenarioError(f"{value!r} is no value of serde {serde}") from error


def _encode(serde: Json, value: Json) -> bytes:
    match serde:
        case str() if serde in _TEXTS:
            return bytes(value.encode())
        case str() if serde in _RAW:
            return bytes.fromhex(value)
        case str() if serde in _NUMBERS:
            return struct.pack(_NUMBERS[serde], value)
        case {"time_windowed": inner}:
            key, start, _ = value
            return _encode(inner, key) + struct.pack(">q", start)
        case {"session_windowed": inner}:
            key, start, end = value
            return _encode(inner, key) + struct.pack(">qq", end, start)
    raise MalformedScenarioError(f"unknown serde {serde}")


def decode(serde: Json, data: bytes | None) -> Json:
    """The JSON value of some bytes. Bytes that do not fit are shown as such: the result is wrong, not the file."""
    if data is None:
        return None
    try:
        return _decode(serde, data)
    except (ValueError, struct.error):
        return {"not": serde, "hex": data.hex()}


def _decode(serde: Json, data: bytes) -> Json:
    match serde:
        case str() if serde in _TEXTS:
            return data.decode()
        case str() if serde in _RAW:
            return data.hex()
        case str() if serde in _NUMBERS:
            return struct.unpack(_NUMBERS[serde], data)[0]
        case {"time_windowed": inner, "size": int(size)}:
            (start,) = struct.unpack(">q", data[-8:])
            return [_decode(inner, data[:-8]), start, start + size]
        case {"session_windowed": inner}:
            end, start = struct.unpack(">qq", data[-16:])
            return [_decode(inner, data[:-16]), start, end]
    raise MalformedScenarioError(f"unknown serde {serde}")
