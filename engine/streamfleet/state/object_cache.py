"""ObjectCache: the values of a store as objects: what was put since the last commit, and what was read or put before.

Used by OwnKeyValueStore where it saves work and changes nothing: for values that nobody can change in place and that come back
from their bytes exactly as they were (`exact_size` of their serde says so), and whose changes are logged once per commit. A put is
then a change of a dict; a value is serialised once per key and commit, when it is taken.

Objects stay after the commit, as long as there is room. What was not used for longest goes first, roughly: they live in two
generations. When half the memory of a thread (ObjectMemory) has been filled, the young generation of every store becomes its old
one, and what was old is dropped; what is used of the old one is young again. An exact order of use would cost every read more than
it saves.
"""

from __future__ import annotations

from typing import Any, Protocol

ENTRY_OVERHEAD_BYTES = 200
"""A guess at what Python adds to a key and a value, so that many small ones count for what they cost."""


class Aging(Protocol):
    """What takes of the memory."""

    def age(self) -> None:
        """All of it has been taken once more: let go of what was not used for long."""


class ObjectMemory:
    """The limit, shared by the stores of all tasks of one StreamThread."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._room = max_bytes // 2
        self._caches: list[Aging] = []

    def join(self, cache: Aging) -> None:
        self._caches.append(cache)

    def leave(self, cache: Aging) -> None:
        self._caches.remove(cache)

    def take(self, size_bytes: int) -> None:
        self._room -= size_bytes
        if self._room < 0:
            for cache in self._caches:
                cache.age()
            self._room = self.max_bytes // 2


class ObjectCache:
    """None stands for nothing known: a deleted row is not kept here."""

    __slots__ = ("_memory", "_old", "_pending", "_young", "changed", "pending_bytes")

    def __init__(self, memory: ObjectMemory) -> None:
        self._memory = memory
        self._young: dict[bytes, Any] = {}
        self._old: dict[bytes, Any] = {}
        self._begin()
        memory.join(self)

    def _begin(self) -> None:
        self._pending: dict[bytes, Any] = {}
        self.changed = self._pending.get
        """`get` for what was put since the last commit only: the dict's own method, without another call around it."""
        self.pending_bytes = 0
        """About how much memory the changes take that are not yet among the rows."""

    def get(self, raw: bytes) -> Any:
        value = self._pending.get(raw)
        if value is None:
            value = self._young.get(raw)
            if value is None:
                value = self._old.get(raw)
                if value is not None:
                    self._young[raw] = value
        return value

    def peek(self, raw: bytes) -> Any:
        """As `get`, without counting as use."""
        value = self._pending.get(raw)
        if value is None:
            value = self._young.get(raw)
        return self._old.get(raw) if value is None else value

    def put(self, raw: bytes, value: Any, size_bytes: int) -> None:
        pending = self._pending
        if raw in pending:
            del pending[raw]  # to be last: changes are logged in the order of the last one per key
        else:
            self.pending_bytes += len(raw) + ENTRY_OVERHEAD_BYTES
        self.pending_bytes += size_bytes
        pending[raw] = value

    def keep(self, raw: bytes, value: Any, size_bytes: int) -> None:
        """What was read from the rows."""
        self._memory.take(len(raw) + size_bytes + ENTRY_OVERHEAD_BYTES)
        self._young[raw] = value

    def forget(self, raw: bytes) -> None:
        """Something else is written to the rows."""
        self._pending.pop(raw, None)
        self._young.pop(raw, None)
        self._old.pop(raw, None)

    def take_pending(self) -> dict[bytes, Any]:
        """What must be written to the rows now. It is kept as well."""
        taken = self._pending
        self._memory.take(self.pending_bytes)
        self._begin()
        self._young.update(taken)
        return taken

    def age(self) -> None:
        self._old, self._young = self._young, {}

    def clear(self) -> None:
        self._young, self._old = {}, {}
        self._begin()

    def close(self) -> None:
        self._memory.leave(self)
        self.clear()
