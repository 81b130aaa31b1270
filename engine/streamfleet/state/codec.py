"""StoreCodec: a store's serdes, applied, with errors that say which store, which side and what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamfleet.errors import SerializationError, StateStoreError, TaskInterruptedError
from streamfleet.records import ValueAndTimestamp
from streamfleet.serdes.api import Serde, required, resolved, resolved_value
from streamfleet.serdes.direct import writer
from streamfleet.state.api import StoreContext
from streamfleet.state.logged_rows import TIMESTAMP_SIZE


class StoreCodec:
    """Keys and values to bytes and back. Serdes see the name of the changelog topic, also where there is none."""

    def __init__(
        self,
        name: str,
        key_serde: Serde[Any] | None,
        value_serde: Serde[Any] | None,
        context: StoreContext,
        *,
        is_timestamped: bool,
    ) -> None:
        self._name = name
        self.topic = context.changelog_topic(name) or f"{context.application_id}-{name}-changelog"
        key_default, value_default = context.default_key_serde, context.default_value_serde
        self._key_serde = required(f"store {name}", "key", resolved(key_serde, key_default))
        self._keys = writer(self._key_serde, self.topic)
        self._write_key = self._keys.call
        value_serde = resolved_value(value_serde, key_default, value_default)
        self._value_serde = required(f"store {name}", "value", value_serde)
        self.value_bytes: Callable[[Any], bytes | None] = (
            self._timestamped_bytes if is_timestamped else self._plain_bytes
        )
        self.exact_size: Callable[[Any], int | None] | None = getattr(self._value_serde, "exact_size", None)
        """Of the bare value, as its serde says; None if it does not."""
        self.gives_immutables = bool(getattr(self._value_serde, "immutable", False))
        """Whether nobody can change a value that was read in place."""
        self.value_of: Callable[[bytes], Any] = self._timestamped_value if is_timestamped else self._plain_value

    def key_bytes(self, key: Any) -> bytes:
        if key is None:
            raise TypeError(f"store {self._name} was given None as a key; leave out records without key first")
        try:
            data: bytes | None = self._write_key(key)
        except (TaskInterruptedError, MemoryError):
            raise  # not about this key or value
        except Exception as error:
            reason = self._keys.reason(key, error)
            raise self._refusal("key", self._key_serde, reason) from reason
        if data is None:
            raise self._refusal("key", self._key_serde, ValueError("it became null"))
        return data

    def bound_bytes(self, key: Any) -> bytes | None:
        """A bound of a range: None is open."""
        return None if key is None else self.key_bytes(key)

    def key_of(self, data: bytes) -> Any:
        try:
            return self._key_serde.deserialize(self.topic, data)
        except (TaskInterruptedError, MemoryError):
            raise  # not about this key or value
        except Exception as error:
            raise self._unreadable("key", self._key_serde, error) from error

    def _plain_bytes(self, value: Any) -> bytes | None:
        if value is None:
            return None
        try:
            return self._value_serde.serialize(self.topic, value)
        except (TaskInterruptedError, MemoryError):
            raise  # not about this key or value
        except Exception as error:
            raise self._refusal("value", self._value_serde, error) from error

    def _plain_value(self, data: bytes) -> Any:
        try:
            return self._value_serde.deserialize(self.topic, data)
        except (TaskInterruptedError, MemoryError):
            raise  # not about this key or value
        except Exception as error:
            raise self._unreadable("value", self._value_serde, error) from error

    def _timestamped_bytes(self, value: Any) -> bytes | None:
        if value is None:
            return None
        if not isinstance(value, ValueAndTimestamp):
            raise TypeError(
                f"store {self._name} is timestamped and takes ValueAndTimestamp, got {value!r} ({type(value).__name__}); "
                "put ValueAndTimestamp(value, timestamp)"
            )
        data = self._plain_bytes(value.value)
        return None if data is None else value.timestamp.to_bytes(TIMESTAMP_SIZE, "big", signed=True) + data

    def _timestamped_value(self, data: bytes) -> ValueAndTimestamp[Any]:
        timestamp = int.from_bytes(data[:TIMESTAMP_SIZE], "big", signed=True)
        return ValueAndTimestamp(self._plain_value(data[TIMESTAMP_SIZE:]), timestamp)

    def _refusal(self, side: str, serde: Serde[Any], error: Exception) -> SerializationError:
        return SerializationError(
            f"{side} of store {self._name} cannot be serialized with {_shown(serde)}: {error}",
            hint=f"give the store a {side}_serde that fits what is put there",
        )

    def _unreadable(self, side: str, serde: Serde[Any], error: Exception) -> StateStoreError:
        return StateStoreError(
            f"{side} in store {self._name} cannot be read with {_shown(serde)}: {error}",
            hint=f"was the {side}_serde changed after the rows were written? reset the store, or use the former serde",
        )


def _shown(serde: Serde[Any]) -> str:
    return repr(serde) if hasattr(serde, "name") else type(serde).__name__
