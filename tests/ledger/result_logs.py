"""What the broker's logs tell of an output and of the group's offsets: who appended what and when, and what was committed when.

Called by the checker of at-least-once runs, when all workers are gone; turns topics into the values that stints.py judges. Outputs
have the broker's time in their records then (`OUTPUT_SETTINGS`), and batches name their producers.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from tests.ledger.log_batches import WrittenBatch
from tests.ledger.stints import Appended, Commit

from streamfleet.ids import TopicPartition
from streamfleet.records import RawRecord

GROUP_OFFSETS = "__consumer_offsets"
OUTPUT_SETTINGS = {"message.timestamp.type": "LogAppendTime"}
_SHORT, _INT = struct.Struct(">h"), struct.Struct(">i")
_OFFSET_VALUE = struct.Struct(">hq")
_OFFSET_KEYS = (0, 1)
"""Versions of keys that are about offsets; others are about the group itself."""


def appended_results(
    results: Iterable[RawRecord], batches: Sequence[WrittenBatch], input_offset: Callable[[RawRecord], int]
) -> list[Appended]:
    """Of one partition of an output that has one result per record of its input, whose offset `input_offset` tells."""
    firsts = [batch.first_offset for batch in batches]
    return [
        Appended(input_offset(raw), batches[bisect_right(firsts, raw.offset) - 1].producer_id, raw.timestamp)
        for raw in results
    ]


def commit_history(records: Iterable[RawRecord], group: str) -> dict[TopicPartition, list[Commit]]:
    """Every commit of a group, from the records of the broker's topic of offsets."""
    history: dict[TopicPartition, list[Commit]] = defaultdict(list)
    for record in records:
        committed = _partition(record.key or b"", group)
        if committed is not None and record.value is not None:
            _, offset = _OFFSET_VALUE.unpack_from(record.value)
            history[committed].append(Commit(offset, record.timestamp))
    return history


def _partition(key: bytes, group: str) -> TopicPartition | None:
    """What a key is about; None if it is not an offset of this group."""
    (version,) = _SHORT.unpack_from(key)
    if version not in _OFFSET_KEYS:
        return None
    of_group, at = _text(key, _SHORT.size)
    topic, at = _text(key, at)
    (number,) = _INT.unpack_from(key, at)
    return TopicPartition(topic, number) if of_group == group else None


def _text(data: bytes, at: int) -> tuple[str, int]:
    (length,) = _SHORT.unpack_from(data, at)
    begin = at + _SHORT.size
    return data[begin : begin + length].decode(), begin + length
