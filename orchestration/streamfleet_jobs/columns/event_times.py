"""Times of records as tables have them, in milliseconds. Called by the bootstrap's local engine and its recomputation."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def milliseconds(column: Any) -> Any:
    """Integers are taken for milliseconds; of timestamps the finer part is cut off, towards the past. Without a zone: UTC."""
    if pa.types.is_timestamp(column.type):
        column = pc.cast(pc.floor_temporal(column, unit="millisecond"), pa.timestamp("ms"))
    return column.cast(pa.int64())
