"""Raw keys: the bytes under which rows travel between the layers of a store and stand in its changelog topic.

    key-value     key
    window        key | start (8) | sequence (4)         the sequence is 0 unless duplicates are retained
    session       key | end (8) | start (8)

How the rows of a kind are laid out in the engine is in its `..._rows.py`; on other topics, in serdes/windowed.py.
"""

from __future__ import annotations

import struct

WINDOW_SUFFIX = 12
SESSION_SUFFIX = 16
MAX_SEQUENCE = 0x7FFFFFFF

_LONG = struct.Struct(">q")
_WINDOW = struct.Struct(">qi")
_SESSION = struct.Struct(">qq")

pack_time = _LONG.pack
"""8 bytes, big endian. Times are never negative here, so their order is that of the bytes."""

pack_window = _WINDOW.pack
"""start, sequence"""

pack_session = _SESSION.pack
"""end, start"""


def window_start(raw: bytes) -> int:
    start: int = _LONG.unpack_from(raw, len(raw) - WINDOW_SUFFIX)[0]
    return start


def session_bounds(raw: bytes) -> tuple[int, int]:
    """End and start."""
    end, start = _SESSION.unpack_from(raw, len(raw) - SESSION_SUFFIX)
    return end, start


def is_between(key: bytes, key_from: bytes | None, key_to: bytes | None) -> bool:
    """Both bounds inclusive; None is open."""
    return (key_from is None or key >= key_from) and (key_to is None or key <= key_to)
