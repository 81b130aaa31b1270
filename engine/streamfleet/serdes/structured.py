"""JSON and MessagePack through msgspec: plain dicts and lists, or values checked against a type (such as a Struct)."""

from __future__ import annotations

import builtins
import enum
from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

import msgspec

from streamfleet.serdes.api import WrongTypeError

T = TypeVar("T")

_UNCHECKED = (Any, float)
"""Types that a value need not be an instance of: float also means int."""

_IMMUTABLE_TYPES = (int, float, str, bytes, bool, type(None))


class StructuredSerde(Generic[T]):
    """Encodes anything msgspec can; decodes to `type`, or to dicts, lists and scalars without one."""

    def __init__(self, name: str, type: Any, encode: Callable[[Any], bytes], decode: Callable[[bytes], Any]) -> None:
        self.name = name
        self.type = type
        self.immutable = _is_immutable(type)
        self._class = type if isinstance(type, builtins.type) and type not in _UNCHECKED else None
        self._encode = encode
        self.decode = decode
        """As `deserialize`, for data that is there; its errors are msgspec's."""

    def __repr__(self) -> str:
        return f"{self.name}({'' if self.type is Any else getattr(self.type, '__name__', self.type)})"

    def serialize(self, topic: str, value: T | None) -> bytes | None:
        if value is None:
            return None
        if self._class is not None and not isinstance(value, self._class):
            raise WrongTypeError(f"{self!r} takes {self._class.__name__}, got {value!r} ({type(value).__name__})")
        try:
            return self._encode(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise TypeError(f"{self!r} cannot write {value!r} ({type(value).__name__}): {error}") from error

    def deserialize(self, topic: str, data: bytes | None) -> T | None:
        if data is None:
            return None
        try:
            value: T = self.decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise ValueError(f"{self!r} cannot read {data[:64]!r}: {error}") from error
        return value


def _is_immutable(of: Any) -> bool:
    """True only where no value of the type can be changed in place, fields included."""
    if not isinstance(of, builtins.type):
        return False
    if of in _IMMUTABLE_TYPES or issubclass(of, enum.Enum):
        return True
    if not issubclass(of, msgspec.Struct) or not of.__struct_config__.frozen:
        return False
    return all(_is_immutable(field.type) for field in msgspec.structs.fields(of))


@overload
def json(type: builtins.type[T]) -> StructuredSerde[T]: ...
@overload
def json(type: None = None) -> StructuredSerde[Any]: ...
@overload
def json(type: Any) -> StructuredSerde[Any]: ...
def json(type: Any = None) -> StructuredSerde[Any]:
    """Compact JSON. With a type, what is read is checked against it."""
    of = Any if type is None else type
    return StructuredSerde("json", of, msgspec.json.Encoder().encode, msgspec.json.Decoder(of).decode)


@overload
def msgpack(type: builtins.type[T]) -> StructuredSerde[T]: ...
@overload
def msgpack(type: None = None) -> StructuredSerde[Any]: ...
@overload
def msgpack(type: Any) -> StructuredSerde[Any]: ...
def msgpack(type: Any = None) -> StructuredSerde[Any]:
    """MessagePack. With a type, what is read is checked against it."""
    of = Any if type is None else type
    return StructuredSerde("msgpack", of, msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(of).decode)
