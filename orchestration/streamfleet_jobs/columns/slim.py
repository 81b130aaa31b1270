"""The slim copy of a changelog: what of every record the rules need, as Parquet. Both engines land the same rows.

    partition, offset, ts, key, vlen (null: tombstone), h (hash of the row that the record makes; null for a tombstone)

Values are not kept. Keys are, so the copy is removed when the run is over.
"""

from __future__ import annotations

import pyarrow as pa

SLIM = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("ts", pa.int64()),
        ("key", pa.binary()),
        ("vlen", pa.int32()),
        ("h", pa.int64()),
    ]
)

SLIM_DDL = "partition int, offset long, ts long, key binary, vlen int, h long"
"""The same in Spark's words."""

PARQUET_OPTIONS = {
    "compression": "zstd",
    "use_dictionary": False,
    "column_encoding": {
        "partition": "PLAIN",
        "offset": "DELTA_BINARY_PACKED",
        "ts": "DELTA_BINARY_PACKED",
        "key": "DELTA_BYTE_ARRAY",
        "vlen": "PLAIN",
        "h": "PLAIN",
    },
}
