"""Bytes of the ledger's topics to values and back: the only place of the checker that uses the app's serdes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from tests.ledger.app import LONG, PAIR, RECORD_ID, SEQUENCE, SOURCE_OFFSET, TEXT, TOTAL, WINDOWED
from tests.ledger.fold import OutputRecord
from tests.ledger.workload import LedgerRecord

from streamfleet.records import RawRecord

_SEQUENCE_BYTES = 4
_WINDOW_BYTES = 8 + _SEQUENCE_BYTES


def input_bytes(record: LedgerRecord) -> tuple[bytes, bytes, list[tuple[str, bytes]]]:
    """Key, value and headers."""
    headers = [(RECORD_ID, str(record.record_id).encode()), (SEQUENCE, str(record.sequence).encode())]
    return record.key.encode(), LONG.serialize("", record.value) or b"", headers


def input_record(raw: RawRecord) -> LedgerRecord:
    headers = dict(raw.headers)
    return LedgerRecord(
        TEXT.deserialize("", raw.key),
        LONG.deserialize("", raw.value),
        int(headers[SEQUENCE] or b""),
        int(headers[RECORD_ID] or b""),
        raw.timestamp,
        raw.partition,
    )


def output_record(output: str, raw: RawRecord) -> OutputRecord:
    if output == "paired":
        return _paired(raw)
    return OutputRecord(
        _key(output, raw.key), _value(output, raw.value), _record_id(output, raw.headers), raw.partition
    )


def kept_row(store: str, raw: RawRecord) -> tuple[Hashable, Any]:
    """Key and value of a changelog record. Windows have their start, and a number, behind the key."""
    key, value = raw.key or b"", LONG.deserialize("", raw.value)
    if not store.startswith("window"):
        return TEXT.deserialize("", key), value
    start = int.from_bytes(key[-_WINDOW_BYTES:-_SEQUENCE_BYTES], "big")
    return (TEXT.deserialize("", key[:-_WINDOW_BYTES]), start), value


def _paired(raw: RawRecord) -> OutputRecord:
    """Known by all of it: one input record may have many partners. What has none comes with the id of a later record."""
    pair = PAIR.deserialize("", raw.value)
    assert pair is not None
    sides = pair.left, pair.right
    follows_from = None if None in sides else _record_id("paired", raw.headers)
    return OutputRecord((TEXT.deserialize("", raw.key), *sides), sides, follows_from, raw.partition)


def record_id(raw: RawRecord) -> int:
    """Of the input record behind a record of any topic of the app."""
    return int(dict(raw.headers)[RECORD_ID] or b"")


def has_record_id(raw: RawRecord) -> bool:
    """Not so what follows from a table that was there before the input."""
    return RECORD_ID in dict(raw.headers)


def source_offset(raw: RawRecord) -> int:
    """Of the record of one of the app's own topics behind a result of `tagg` or `owned`."""
    return int(dict(raw.headers)[SOURCE_OFFSET] or b"")


def text_key(raw: RawRecord) -> str:
    """A tag or an account, of a record of the app's own topics."""
    return TEXT.deserialize("", raw.key) or ""


def _key(output: str, data: bytes | None) -> Any:
    if not output.startswith("window"):
        return TEXT.deserialize("", data)
    windowed = WINDOWED.deserialize("", data)
    assert windowed is not None
    return windowed.key, windowed.window.start


def _value(output: str, data: bytes | None) -> Any:
    if output != "avg":
        return LONG.deserialize("", data)
    total = TOTAL.deserialize("", data)
    assert total is not None
    return total.total, total.count


def _record_id(output: str, headers: Sequence[tuple[str, bytes | None]]) -> int | None:
    """Where a result follows from many records, the id that came with it is that of the record that made it visible."""
    if output in ("tagg", "window-closed", "window-final"):
        return None
    found = dict(headers).get(RECORD_ID)
    return None if found is None else int(found)
