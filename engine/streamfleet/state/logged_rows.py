"""LoggedRows: writes to the rows below, then reports the change to the changelog. UnstampedRows: forgets timestamps on the way."""

from __future__ import annotations

from streamfleet.records import Headers
from streamfleet.state.api import StoreContext
from streamfleet.state.changelog import ChangeLog
from streamfleet.state.rows_api import BottomRows, Rows

TIMESTAMP_SIZE = 8
"""Timestamped stores put the timestamp in front of the value: 8 bytes, big endian, signed."""
UNKNOWN_TIMESTAMP = (-1).to_bytes(TIMESTAMP_SIZE, "big", signed=True)


class UnstampedRows:
    """Writes to the rows below, with -1 in place of every timestamp: for plain stores that hold a table."""

    def __init__(self, rows: BottomRows) -> None:
        self._put = rows.put
        self.get = rows.get
        self.remove = rows.remove

    def put(self, raw: bytes, value: bytes | None) -> None:
        self._put(raw, None if value is None else UNKNOWN_TIMESTAMP + value[TIMESTAMP_SIZE:])


class LoggedRows:
    """Changelog records of a timestamped store hold the bare value and are stamped with its timestamp; all others, and
    tombstones, with that of the record under way.
    """

    def __init__(
        self,
        rows: Rows,
        changelog: ChangeLog,
        context: StoreContext,
        *,
        is_timestamped: bool,
        logs_headers: bool = False,
    ) -> None:
        self._logs_headers = logs_headers
        self._rows = rows
        self._log = changelog.log
        self._context = context
        self._is_timestamped = is_timestamped
        self.get = rows.get

    def put(self, raw: bytes, value: bytes | None) -> None:
        self._rows.put(raw, value)
        self.log_put(raw, value)

    def log_put(self, raw: bytes, value: bytes | None) -> None:
        """Log a change without making it: of a row that has become too old to be kept."""
        if value is not None and self._is_timestamped:
            timestamp = int.from_bytes(value[:TIMESTAMP_SIZE], "big", signed=True)
            self._log(raw, value[TIMESTAMP_SIZE:], timestamp, self._headers())
        else:
            self._log(raw, value, self._record_timestamp(), self._headers())

    def remove(self, raw: bytes) -> None:
        self._rows.remove(raw)
        self.log_removal(raw)

    def log_removal(self, raw: bytes) -> None:
        """Log that a row is gone: also when it was not asked for, as in an LRU store."""
        self._log(raw, None, self._record_timestamp(), self._headers())

    def _headers(self) -> Headers:
        context = self._context.record_context if self._logs_headers else None
        return () if context is None else context.headers

    def _record_timestamp(self) -> int | None:
        record_context = self._context.record_context
        return None if record_context is None else record_context.timestamp
