"""How far the StateUpdater is with a task: as values that any thread may read, and as the record that only the updater changes."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from streamfleet.changelog.restorable_task import RestorableTask
from streamfleet.ids import TaskId, TopicPartition


class UpdateKind(enum.Enum):
    """Why a task is with the StateUpdater."""

    ACTIVE = "active"
    """It runs as soon as it is restored, and until then nobody processes its records: it comes first."""
    STANDBY = "standby"
    """A copy, for the case that the active task is lost."""
    WARMUP = "warmup"
    """A copy that is to become the active task when it is near enough."""


class TaskProgress(msgspec.Struct, frozen=True):
    """`remaining` counts offsets, so transaction markers are in it; None: not known yet, nothing was fetched."""

    task_id: TaskId
    kind: UpdateKind
    remaining: int | None
    restored_records: int
    positions: Mapping[TopicPartition, int]
    """Offset of the next record of each changelog."""
    remaining_bytes: int | None = None
    """An estimate, by what was read so far: keys and values per offset. None: nothing was."""

    @property
    def offset_sum(self) -> int:
        """How much of its changelogs a task has, as the group compares it."""
        return sum(self.positions.values())


@dataclass
class Update:
    """A task that the updater holds. `ends` are for an active task, `limits` for a copy whose changelog is an input topic."""

    task: RestorableTask
    kind: UpdateKind
    positions: dict[TopicPartition, int]
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    limits: dict[TopicPartition, int] = field(default_factory=dict)
    known_ends: dict[TopicPartition, int] = field(default_factory=dict)
    """Of a copy: where each changelog ended when it was last looked at."""
    totals: dict[TopicPartition, int] = field(default_factory=dict)
    """Records applied, by partition."""
    restored_records: int = 0
    restored_bytes: float = 0.0
    """About: measured by a part of the records."""

    def __post_init__(self) -> None:
        self._began_at = sum(self.positions.values())

    @property
    def is_active(self) -> bool:
        return self.kind is UpdateKind.ACTIVE

    @property
    def unread(self) -> dict[TopicPartition, int]:
        """Partitions to read, and from where. Copies go on reading, so theirs are all."""
        if not self.is_active:
            return dict(self.positions)
        return {partition: at for partition, at in self.positions.items() if at < self.ends[partition]}

    def bound(self, partition: TopicPartition) -> int | None:
        """Records from this offset on are not to be applied; None: there is no such."""
        return self.ends.get(partition) if self.is_active else self.limits.get(partition)

    @property
    def remaining(self) -> int | None:
        ends = self.ends if self.is_active else self.known_ends
        if len(ends) < len(self.positions):
            return None
        return sum(max(0, ends[partition] - at) for partition, at in self.positions.items())

    @property
    def remaining_bytes(self) -> int | None:
        left, passed = self.remaining, sum(self.positions.values()) - self._began_at
        if left == 0:
            return 0
        # Per offset, not per record: a compacted changelog has holes, and what is left of it has as many.
        return None if left is None or passed <= 0 else round(left * self.restored_bytes / passed)

    @property
    def is_complete(self) -> bool:
        return self.is_active and self.remaining == 0

    def progress(self) -> TaskProgress:
        return TaskProgress(
            self.task.task_id,
            self.kind,
            self.remaining,
            self.restored_records,
            dict(self.positions),
            self.remaining_bytes,
        )
