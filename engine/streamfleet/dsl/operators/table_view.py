"""How operators read tables and pass changes on.

A table is read through a ValueGetter: from its store if it has one, else by asking the table it is made of and computing again.
An UpdateForwarder forwards a change at once, or leaves that to the store's cache.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from streamfleet.errors import StreamsError
from streamfleet.processor.api import InternalProcessorContext, Processor, ProcessorContext
from streamfleet.records import Change, Headers, Record, ValueAndTimestamp
from streamfleet.state.api import VersionedKeyValueStore
from streamfleet.state.key_value_store import OwnKeyValueStore
from streamfleet.state.own_store import OwnStore
from streamfleet.state.window_store import OwnWindowStore

AnyProcessor = Processor[Any, Any, Any, Any]
Row = ValueAndTimestamp[Any]


class PartsProcessor(AnyProcessor):
    """Takes a record in its parts, and forwards with `forward_parts`: generated code makes no Record for it."""

    context: InternalProcessorContext

    def process(self, record: Record[Any, Any]) -> None:
        self.process_parts(record.key, record.value, record.timestamp, record.headers)

    @abstractmethod
    def process_parts(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None: ...


class ValueGetter(ABC):
    """Reads a table by key, inside the processor that owns it."""

    @abstractmethod
    def init(self, context: InternalProcessorContext) -> None: ...

    @abstractmethod
    def get(self, key: Any) -> Row | None: ...

    @property
    def is_versioned(self) -> bool:
        """Whether `get_as_of` works. Known after `init`."""
        return False

    def get_as_of(self, key: Any, timestamp: int) -> Row | None:
        """What the table held at some time; an error where `is_versioned` is false."""
        raise StreamsError(
            f"the table was asked for what {key!r} was at {timestamp}, but it has no history",
            hint="keep it in a versioned store: Stores.versioned_key_value(...)",
        )

    def close(self) -> None:
        """Most hold nothing."""


@dataclass(frozen=True)
class TableView:
    """How to read a table: makes a getter per task, and names the stores that must be connected to its reader."""

    stores: tuple[str, ...]
    make: Callable[[], ValueGetter]


class TableOperator(ABC):
    """The supplier behind a KTable. Old values are sent only once somebody downstream has asked for them."""

    send_old_values = False

    @abstractmethod
    def __call__(self) -> AnyProcessor: ...

    @abstractmethod
    def enable_sending_old_values(self, *, force: bool) -> bool:
        """Start to forward old values too. Without `force`, only if no table has to be materialized for it; says whether."""

    @abstractmethod
    def view(self) -> TableView:
        """How to read the table; materializes what must be."""


class StoreGetter(ValueGetter):
    """Reads a timestamped key-value store."""

    def __init__(self, store: str) -> None:
        self._name = store

    def init(self, context: InternalProcessorContext) -> None:
        self._store = context.get_state_store(self._name)
        self.get = self._store.get  # type: ignore[method-assign]

    def get(self, key: Any) -> Row | None:
        raise RuntimeError(f"store {self._name} is read before the processor is initialised")

    @property
    def is_versioned(self) -> bool:
        return isinstance(self._store, VersionedKeyValueStore)

    def get_as_of(self, key: Any, timestamp: int) -> Row | None:
        row: Row | None = self._store.get(key, timestamp)
        return row


class WindowStoreGetter(ValueGetter):
    """Reads a window store by Windowed keys."""

    def __init__(self, store: str) -> None:
        self._name = store

    def init(self, context: InternalProcessorContext) -> None:
        self._store = context.get_state_store(self._name)

    def get(self, key: Any) -> Row | None:
        row: Row | None = self._store.fetch(key.key, key.window.start)
        return row


class SessionStoreGetter(ValueGetter):
    """Reads a session store by Windowed keys; a session's timestamp is its end."""

    def __init__(self, store: str) -> None:
        self._name = store

    def init(self, context: InternalProcessorContext) -> None:
        self._store = context.get_state_store(self._name)

    def get(self, key: Any) -> Row | None:
        value = self._store.fetch_session(key.key, key.window.start, key.window.end)
        return None if value is None else ValueAndTimestamp(value, key.window.end)


def store_view(store: str) -> TableView:
    return TableView((store,), lambda: StoreGetter(store))


class TableRows:
    """The store of a table as its operator writes it. Who reads a row and then writes it asks for its place first: `locate(key)`,
    then `get_at(place)` and `put_at(place, value, timestamp)`.
    """

    def __init__(self, store: Any) -> None:
        self._store = store
        self.get = self.get_at = store.get
        self.locate: Callable[[Any], Any] = _itself

    def put_at(self, place: Any, value: Any, timestamp: int) -> bool | None:
        return self.put(place, value, timestamp)

    def put(self, key: Any, value: Any, timestamp: int) -> bool | None:
        """True: it is the newest of its key; False: it changed only history; None: it was too old even for that."""
        self._store.put(key, as_row(value, timestamp))
        return True


class RawTableRows(TableRows):
    """The store serializes a key once for reading and writing: its place is the serialized key."""

    def __init__(self, store: OwnKeyValueStore[Any, Any]) -> None:
        super().__init__(store)
        self.locate, self.get_at = store.raw_key, store.get_at
        self.put_at = store.put_row  # type: ignore[method-assign, assignment]  # a call less per record


class VersionedTableRows(TableRows):
    def put(self, key: Any, value: Any, timestamp: int) -> bool | None:
        valid_to = self._store.put(key, value, timestamp)
        if valid_to == VersionedKeyValueStore.NOT_PUT:
            return None
        return bool(valid_to == VersionedKeyValueStore.VALID_TO_UNDEFINED)


class WindowRows:
    """The store of windowed aggregates, as TableRows of tables."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.locate: Callable[[Any, int], Any] = _only_key
        self.get_at: Callable[[Any, int], Row | None] = store.fetch

    def put_at(self, place: Any, start: int, value: Any, timestamp: int) -> None:
        self._store.put(place, as_row(value, timestamp), start)


class RawWindowRows(WindowRows):
    """The place of a row is its raw key."""

    def __init__(self, store: OwnWindowStore[Any, Any]) -> None:
        super().__init__(store)
        self.locate, self.get_at = store.raw_row, store.get_row
        self.put_at = store.put_row  # type: ignore[method-assign, assignment]  # a call less per record


def window_rows(store: Any) -> WindowRows:
    return RawWindowRows(store) if isinstance(store, OwnWindowStore) and store.is_timestamped else WindowRows(store)


def table_rows(store: Any) -> TableRows:
    if isinstance(store, OwnKeyValueStore) and store.is_timestamped:
        return RawTableRows(store)
    return VersionedTableRows(store) if isinstance(store, VersionedKeyValueStore) else TableRows(store)


def expect_look_back(store: Any, look_back_ms: int) -> None:
    """Say how far an operator looks back with every record; a store that a user brings is not told."""
    if isinstance(store, OwnStore):
        store.expect_look_back(look_back_ms)


def _itself(key: Any) -> Any:
    return key


def _only_key(key: Any, _start: int) -> Any:
    return key


class UpdateForwarder:
    """Forwards changes of a stored table: at once, or when the store's cache is flushed.

    `value_of` and `time_of` say how a row of the store reads: timestamped rows carry their time, sessions end with their window.
    """

    def __init__(self, context: ProcessorContext[Any, Any], store: Any | None, *, send_old_values: bool) -> None:
        """`store` None: nothing is ever held back."""
        assert isinstance(context, InternalProcessorContext)
        self._context = context
        self._send_old_values = send_old_values
        self.is_cached = store is not None and store.set_flush_listener(self._on_flush, send_old_values=send_old_values)

    def forward(self, record: Record[Any, Change[Any]]) -> None:
        if self.is_cached:
            return
        if not self._send_old_values and record.value.old is not None:
            record = record.with_value(Change(record.value.new, None, record.value.is_latest))
        self._context.forward(record)

    def _on_flush(self, key: Any, new: Any, old: Any, timestamp: int) -> None:
        record_context = self._context.record_context
        headers = () if record_context is None else record_context.headers
        self._context.forward(Record(key, *self._change(key, new, old, timestamp), headers))

    def _change(self, _key: Any, new: Row | None, old: Row | None, timestamp: int) -> tuple[Change[Any], int]:
        change: Change[Any] = Change(value_or_none(new), value_or_none(old))
        return change, timestamp if new is None else new.timestamp


class SessionForwarder(UpdateForwarder):
    """Rows of session stores have no timestamp of their own."""

    def _change(self, key: Any, new: Any, old: Any, timestamp: int) -> tuple[Change[Any], int]:
        return Change(new, old), key.window.end


def value_or_none(row: Row | None) -> Any:
    return None if row is None else row.value


def as_row(value: Any, timestamp: int) -> Row | None:
    return None if value is None else ValueAndTimestamp(value, timestamp)


def internal(context: ProcessorContext[Any, Any]) -> InternalProcessorContext:
    assert isinstance(context, InternalProcessorContext)
    return context
