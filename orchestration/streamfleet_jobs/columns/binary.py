"""Binary columns as numpy arrays: the bytes, and where each value begins. Called by the hashes of this package."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Column = Any
"""An Arrow array, whole or in chunks."""
UInt32s = npt.NDArray[np.uint32]
Int64s = npt.NDArray[np.int64]


class BinaryValues(NamedTuple):
    """`data` has no gaps; value i is data[starts[i] : starts[i] + lengths[i]]. Nulls have no bytes."""

    data: npt.NDArray[np.uint8]
    starts: Int64s
    lengths: Int64s

    def shortened(self, suffix: int) -> BinaryValues:
        """Without the last `suffix` bytes of every value (of a shorter value: nothing is left)."""
        return BinaryValues(self.data, self.starts, np.maximum(self.lengths - suffix, 0))


def binary_values(column: Column) -> BinaryValues:
    """Slices and chunks are fine."""
    array: Any = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # older Arrow keeps one that has no chunk
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], pa.binary())
    if not pa.types.is_large_binary(array.type):
        array = array.cast(pa.large_binary())
    _, offset_buffer, data_buffer = array.buffers()
    if len(array) == 0:
        none = np.zeros(0, np.int64)
        return BinaryValues(np.zeros(0, np.uint8), none, none)
    offsets = np.frombuffer(offset_buffer, np.int64)[array.offset : array.offset + len(array) + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    data = np.frombuffer(data_buffer, np.uint8)[first:last] if data_buffer is not None else np.zeros(0, np.uint8)
    return BinaryValues(data, offsets[:-1] - first, np.diff(offsets))
