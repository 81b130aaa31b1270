"""The time in the keys of windowed changelogs: of a window its start, of a session its end. Called by both engines."""

from __future__ import annotations

import numpy as np

from streamfleet_jobs.columns.binary import BinaryValues, Int64s


def key_times(keys: BinaryValues, suffix: int) -> Int64s:
    """The 8 bytes, big endian, that begin `suffix` bytes before the end; -1 for keys that are too short."""
    times = np.full(len(keys.lengths), -1, np.int64)
    long_enough = np.flatnonzero(keys.lengths >= suffix)
    if len(long_enough):
        first = keys.starts[long_enough] + keys.lengths[long_enough] - suffix
        digits = keys.data[first[:, None] + np.arange(8)]
        times[long_enough] = digits.copy().view(">i8").reshape(-1)
    return times
