"""Position: how far each input was processed for a state, as topic -> partition -> offset. The unit of "how fresh".

A result carries the position of what was read; a request may carry one as a bound. All records up to an offset are part of
the state, none after it is: so a later position answers whatever an earlier one would.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from streamfleet.ids import TopicPartition


class Position(msgspec.Struct, frozen=True):
    """Offsets of the last records that are part of a state; nothing is said about what is missing."""

    offsets: Mapping[str, Mapping[int, int]] = {}

    @classmethod
    def of(cls, processed: Mapping[TopicPartition, int]) -> Position:
        offsets: dict[str, dict[int, int]] = {}
        for (topic, partition), offset in processed.items():
            offsets.setdefault(topic, {})[partition] = offset
        return cls(offsets)

    @property
    def is_empty(self) -> bool:
        return not self.offsets

    def covers(self, bound: Position, partition: int | None = None) -> bool:
        """Whether this position is at, or after, what the bound says about a partition; None: about all of them."""
        for topic, wanted in bound.offsets.items():
            reached = self.offsets.get(topic, {})
            for number, offset in wanted.items():
                if partition in (None, number) and reached.get(number, -1) < offset:
                    return False
        return True

    def merged(self, other: Position) -> Position:
        """The later of both, partition by partition."""
        offsets = {topic: dict(partitions) for topic, partitions in self.offsets.items()}
        for topic, partitions in other.offsets.items():
            mine = offsets.setdefault(topic, {})
            for partition, offset in partitions.items():
                mine[partition] = max(offset, mine.get(partition, offset))
        return Position(offsets)
