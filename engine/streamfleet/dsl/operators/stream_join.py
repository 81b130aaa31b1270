"""Two streams joined within a window of time.

Each side is a chain of two processors: the first forwards a record and then keeps it (JoinWindowOperator), the second looks up the
records that the other side has kept (StreamJoinOperator). So a record meets those before it, never itself.

In a left or outer join a record without partner waits in a store that both sides share, ordered by time, until its window has
closed; then it is joined with None. A join of a stream with itself needs one store only (SelfJoinOperator).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from streamfleet.dsl.operators.table_view import AnyProcessor, expect_look_back, internal
from streamfleet.dsl.windows import JoinWindows
from streamfleet.durations import LONG_MAX
from streamfleet.processor.api import InternalProcessorContext, ProcessorContext
from streamfleet.records import NO_TIMESTAMP, Record, ValueAndTimestamp
from streamfleet.serdes.join_side import SidedKey, SidedValue

Joiner = Callable[[Any, Any, Any], Any]
"""f(key, value of the left stream, value of the right stream) -> result"""

DEFAULT_EMIT_INTERVAL_MS = 1000
DROPPED = "null join key or value"


class JoinWindowOperator:
    """Passes records on, and keeps them after that."""

    def __init__(self, store: str) -> None:
        self._store = store

    def __call__(self) -> AnyProcessor:
        return _JoinWindow(self._store)


class _JoinWindow(AnyProcessor):
    def __init__(self, store: str) -> None:
        self._store_name = store

    def init(self, context: ProcessorContext[Any, Any]) -> None:
        self.context = context
        self._store = context.get_state_store(self._store_name)
        self._stamps = getattr(self._store, "is_timestamped", False)

    def process(self, record: Record[Any, Any]) -> None:
        self.context.forward(record)
        if record.key is not None:
            value = record.value
            if self._stamps and value is not None:
                value = ValueAndTimestamp(value, record.timestamp)
            self._store.put(record.key, value, record.timestamp)


def _bare(value: Any) -> Any:
    """Stores in memory hold the timestamp with the value, as in the original; the window start says the same."""
    return value.value if type(value) is ValueAndTimestamp else value


@dataclass(frozen=True)
class JoinSide:
    """What differs between the two processors of a join."""

    is_left: bool
    is_outer: bool
    """Whether a record of this side that finds no partner is joined with None."""
    other_store: str


@dataclass(frozen=True, eq=False)
class StreamJoin:
    """What the two have in common. `waiting` names the store of records without partner, in left and outer joins."""

    windows: JoinWindows
    joiner: Joiner
    waiting: str | None


class StreamJoinOperator:
    def __init__(self, join: StreamJoin, side: JoinSide) -> None:
        self._join = join
        self._side = side

    def __call__(self) -> AnyProcessor:
        return _StreamJoin(self._join, self._side)


class _SharedTime:
    """What both sides know: stream time over both, and when to look for records whose window has closed."""

    def __init__(self, context: InternalProcessorContext) -> None:
        configured = context.config.outer_join_emit_interval_ms
        self._interval_ms = DEFAULT_EMIT_INTERVAL_MS if configured is None else configured
        self._next_look_ms = 0
        self._context = context
        self.stream_time = NO_TIMESTAMP
        self.earliest_waiting = LONG_MAX
        """No record that waits is older than this."""

    def may_look(self) -> bool:
        """At most once in an interval of wall-clock time, because looking means a scan. Starts the next interval."""
        now_ms = self._context.current_system_time_ms()
        if self._next_look_ms - self._interval_ms <= now_ms < self._next_look_ms:  # else the clock was set back
            return False
        self._next_look_ms = now_ms + self._interval_ms
        return True


class _Waiting:
    """The records without partner: a list of them for every time, side and key."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.all = store.all

    def add(self, key: SidedKey, value: SidedValue) -> None:
        self._store.put(key, [*(self._store.get(key) or ()), value])

    def remove(self, key: SidedKey) -> None:
        if self._store.get(key) is not None:
            self._store.put(key, None)


class _StreamJoin(AnyProcessor):
    def __init__(self, join: StreamJoin, side: JoinSide) -> None:
        self._join = join
        self._is_left = side.is_left
        self._is_outer = side.is_outer
        self._other_store = side.other_store
        windows = join.windows
        before, after = windows.before_ms, windows.after_ms
        self._look_back_ms, self._look_ahead_ms = (before, after) if side.is_left else (after, before)

    def init(self, context: ProcessorContext[Any, Any]) -> None:
        self.context = context
        self._others = context.get_state_store(self._other_store)
        expect_look_back(self._others, self._look_back_ms + self._look_ahead_ms)
        waiting = self._join.waiting
        self._waiting = None if waiting is None else _Waiting(context.get_state_store(waiting))
        inside = internal(context)
        self._time = inside.shared(self._join, lambda: _SharedTime(inside))

    def process(self, record: Record[Any, Any]) -> None:
        time = self._time
        timestamp = record.timestamp
        time.stream_time = max(time.stream_time, timestamp)
        if record.value is None or (record.key is None and not self._is_outer):
            internal(self.context).drop(DROPPED)
            return
        if record.key is None:
            self._forward(record, record.key, record.value, None, timestamp)
            return
        if self._waiting is not None and timestamp == time.stream_time:
            self._emit_closed(record)
        window_end = max(0, timestamp + self._look_ahead_ms)
        found = False
        with self._others.fetch_between(record.key, max(0, timestamp - self._look_back_ms), window_end) as others:
            for other_timestamp, other in others:
                found = True
                if self._waiting is not None:
                    self._waiting.remove(SidedKey(other_timestamp, not self._is_left, record.key))
                self._forward(record, record.key, record.value, _bare(other), max(timestamp, other_timestamp))
        if self._is_outer and not found:
            self._wait(record, window_end)

    def _wait(self, record: Record[Any, Any], window_end: int) -> None:
        """For a partner; unless none can come any more, because the window is past already."""
        if self._waiting is None or window_end < self._time.stream_time:
            self._forward(record, record.key, record.value, None, record.timestamp)
            return
        self._time.earliest_waiting = min(self._time.earliest_waiting, record.timestamp)
        self._waiting.add(
            SidedKey(record.timestamp, self._is_left, record.key), SidedValue(self._is_left, record.value)
        )

    def _emit_closed(self, record: Record[Any, Any]) -> None:
        """Join with None what waits and whose window has closed. Rows come by time, so the first open one of each side ends it."""
        time, waiting = self._time, self._waiting
        assert waiting is not None
        if not self._can_be_closed(time.earliest_waiting, self._look_ahead_ms) or not time.may_look():
            return
        time.earliest_waiting = LONG_MAX
        open_sides: set[bool] = set()
        windows = self._join.windows
        with waiting.all() as rows:
            for key, values in rows:
                time.earliest_waiting = key.timestamp
                if len(open_sides) == 2:
                    break
                if not self._can_be_closed(key.timestamp, windows.after_ms if key.is_left else windows.before_ms):
                    open_sides.add(key.is_left)
                    continue
                for value in values:
                    self._forward_alone(record, key, value.value)
                waiting.remove(key)

    def _can_be_closed(self, timestamp: int, look_ahead_ms: int) -> bool:
        """When nothing waits, `timestamp` is the end of time. The sum overflows in the original, which then looks, finds nothing,
        and has used up its turn. So it is here: results must come when they would come there.
        """
        end = timestamp + look_ahead_ms + self._join.windows.grace_ms
        return end < self._time.stream_time or end > LONG_MAX

    def _forward(self, record: Record[Any, Any], key: Any, own: Any, other: Any, timestamp: int) -> None:
        joiner = self._join.joiner
        joined = joiner(key, own, other) if self._is_left else joiner(key, other, own)
        self.context.forward(Record(key, joined, timestamp, record.headers))

    def _forward_alone(self, record: Record[Any, Any], key: SidedKey, value: Any) -> None:
        left, right = (value, None) if key.is_left else (None, value)
        joined = self._join.joiner(key.key, left, right)
        self.context.forward(Record(key.key, joined, key.timestamp, record.headers))


class SelfJoinOperator:
    """A stream joined with itself. The results, and their order, are those of the two-sided join."""

    def __init__(self, windows: JoinWindows, joiner: Joiner, store: str) -> None:
        self._windows = windows
        self._joiner = joiner
        self._store = store

    def __call__(self) -> AnyProcessor:
        return _SelfJoin(self._windows, self._joiner, self._store)


class _SelfJoin(AnyProcessor):
    def __init__(self, windows: JoinWindows, joiner: Joiner, store: str) -> None:
        self._windows = windows
        self._joiner = joiner
        self._store_name = store

    def init(self, context: ProcessorContext[Any, Any]) -> None:
        self.context = context
        self._stream_time = NO_TIMESTAMP
        self._store = context.get_state_store(self._store_name)
        expect_look_back(self._store, self._windows.before_ms + self._windows.after_ms)

    def process(self, record: Record[Any, Any]) -> None:
        key, value, timestamp = record.key, record.value, record.timestamp
        if key is None or value is None:
            internal(self.context).drop(DROPPED)
            return
        self._stream_time = max(self._stream_time, timestamp)
        before, after = self._windows.before_ms, self._windows.after_ms
        for other_timestamp, other in self._fetch(key, timestamp - before, timestamp + after):
            self._forward(record, value, other, max(timestamp, other_timestamp))
        # The other way round in a loop of its own, so that the order is that of a join of two streams.
        meets_itself = timestamp > self._stream_time - self._windows.retention_ms + 1
        for other_timestamp, other in self._fetch(key, timestamp - after, timestamp + before):
            if meets_itself and timestamp < other_timestamp:
                meets_itself = False
                self._forward(record, value, value, timestamp)
            self._forward(record, other, value, max(timestamp, other_timestamp))
        if meets_itself:
            self._forward(record, value, value, timestamp)

    def _fetch(self, key: Any, time_from: int, time_to: int) -> list[tuple[int, Any]]:
        with self._store.fetch_between(key, max(0, time_from), max(0, time_to)) as rows:
            return [(timestamp, _bare(value)) for timestamp, value in rows]

    def _forward(self, record: Record[Any, Any], left: Any, right: Any, timestamp: int) -> None:
        self.context.forward(Record(record.key, self._joiner(record.key, left, right), timestamp, record.headers))
