"""Where a task begins to read an input: behind its committed offset, or where its source says. Asked by TaskManager.

A source says `earliest` (the default of the original), `latest`, a duration before now (the first record of that time or later, the
end if there is none), or `none`, which is an error. The same word decides when a committed offset is no longer there, but then
without a default: input that was deleted before it was processed is passed over only where somebody has said so.
"""

from __future__ import annotations

from datetime import timedelta

import msgspec

from streamfleet.durations import duration_ms
from streamfleet.errors import StreamsError
from streamfleet.ids import TaskId, TopicPartition
from streamfleet.kafka.client_errors import InputGapError
from streamfleet.ports import Admin, OffsetKind
from streamfleet.thread.task_factory import TaskFactory
from streamfleet.topology.nodes import OffsetReset

_KINDS = {"earliest": OffsetKind.EARLIEST, "latest": OffsetKind.LAST_STABLE}


class PassedGap(msgspec.Struct, frozen=True):
    """Input goes on at `target`."""

    source: str
    target: int
    gap: InputGapError
    deleted: int
    """Offsets that were not processed, and are gone."""
    skipped: int
    """Offsets that are still there, but lie before where the source wants to go on."""


class InputPositions:
    def __init__(self, factory: TaskFactory, admin: Admin) -> None:
        self._factory = factory
        self._admin = admin

    def beginning(self, task_id: TaskId, partition: TopicPartition) -> int:
        """Where to begin without a committed offset."""
        policy = self._factory.offset_reset(task_id, partition.topic)
        position = self._position(partition, policy)
        if position is None:
            raise StreamsError(
                f"there is no committed offset for {partition}, and its source says {policy!r}",
                hint="set the group's offsets first, or let the source begin at earliest, latest or a duration before now",
            )
        return position

    def behind_gap(self, task_id: TaskId, partition: TopicPartition, offset: int) -> PassedGap:
        """Where to go on when the offset that was to be read is gone; raises InputGapError if nobody has said that."""
        earliest = self._admin.list_offsets([partition], OffsetKind.EARLIEST)[partition]
        end = self._admin.list_offsets([partition], OffsetKind.LAST_STABLE)[partition]
        gap = InputGapError(partition, offset, earliest if offset < earliest else end)
        source = self._factory.source(task_id, partition.topic)
        if partition.topic in self._factory.repartition_topics:
            raise gap
        target = self._position(partition, source.offset_reset)
        if target is None:
            raise gap
        deleted = max(0, earliest - offset)
        return PassedGap(source.name, target, gap, deleted, max(0, target - max(offset, earliest)))

    def _position(self, partition: TopicPartition, policy: OffsetReset | None) -> int | None:
        if isinstance(policy, timedelta):
            since_ms = max(0, self._factory.clock.now_ms() - duration_ms(policy, "offset_reset"))
            return self._admin.offsets_since([partition], since_ms)[partition]
        kind = _KINDS.get(str(policy))
        return None if kind is None else self._admin.list_offsets([partition], kind)[partition]
