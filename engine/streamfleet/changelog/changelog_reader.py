"""ChangelogReader: the restore consumer, as the StateUpdater uses it. Which partition is read for which task, from where to where.

Active tasks come first: as long as there is one, the partitions of copies are paused. A partition whose reading has a bound (an
input topic that serves as changelog may be read only as far as it was processed) rests when it has reached it; so does one of a
copy that cannot be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from streamfleet.changelog.progress import Update
from streamfleet.ids import TopicPartition
from streamfleet.ports import Consumer, ConsumerEvent
from streamfleet.records import RawRecord


@dataclass(frozen=True)
class Batch:
    """Records of one changelog partition, in order; those behind its bound are left out."""

    update: Update
    partition: TopicPartition
    records: list[RawRecord]


class ChangelogReader:
    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._owners: dict[TopicPartition, Update] = {}
        self._resting: set[TopicPartition] = set()
        self._has_active = False

    def begin(self, update: Update) -> None:
        unread = update.unread
        self._owners.update(dict.fromkeys(unread, update))
        self._consumer.incremental_assign(unread)
        if self._has_active and not update.is_active:
            self._consumer.pause(unread)
        for partition in unread:
            self._rest_at_bound(update, partition)
        self._give_way()

    def end(self, update: Update) -> None:
        partitions = [partition for partition, owner in self._owners.items() if owner is update]
        for partition in partitions:
            del self._owners[partition]
            self._resting.discard(partition)
        self._consumer.incremental_unassign(partitions)
        self._give_way()

    def _give_way(self) -> None:
        """Pause the copies when there is an active task, and resume them when there is none any more."""
        has_active = any(update.is_active for update in self._owners.values())
        if has_active == self._has_active:
            return
        self._has_active = has_active
        copies = [p for p, update in self._owners.items() if not update.is_active and p not in self._resting]
        if has_active:
            self._consumer.pause(copies)
        else:
            self._consumer.resume(copies)

    def owner(self, partition: TopicPartition) -> Update | None:
        return self._owners.get(partition)

    def poll(self, wait_ms: int, max_records: int) -> tuple[int, Iterator[Batch]]:
        """How many records there were, and those to apply. Waits at most that long for the first."""
        by_partition: dict[TopicPartition, list[RawRecord]] = {}
        polled = self._consumer.poll_batch(wait_ms, max_records)
        for record in polled:
            by_partition.setdefault(TopicPartition(record.topic, record.partition), []).append(record)
        return len(polled), self._batches(by_partition)

    def _batches(self, by_partition: Mapping[TopicPartition, list[RawRecord]]) -> Iterator[Batch]:
        for partition, records in by_partition.items():
            update = self._owners.get(partition)
            if update is None:
                continue  # given up while the batch was under way
            bound = update.bound(partition)
            wanted = records if bound is None else [record for record in records if record.offset < bound]
            if wanted:
                yield Batch(update, partition, wanted)
            if self._owners.get(partition) is update:  # it may have failed, and be gone
                behind = records[-1].offset + 1
                update.positions[partition] = behind if bound is None else min(behind, bound)
                self._rest_at_bound(update, partition)

    def _rest_at_bound(self, update: Update, partition: TopicPartition) -> None:
        if update.is_active:
            return
        bound = update.bound(partition)
        if bound is not None and update.positions[partition] >= bound:
            self.rest(update, partition)

    def rest(self, update: Update, partition: TopicPartition) -> None:
        """Read no more of a copy's partition, until its bound is raised."""
        if partition not in self._resting:
            self._resting.add(partition)
            self._consumer.seek(partition, update.positions[partition])  # behind it may lie what was read too early
            self._consumer.pause([partition])

    def is_resting(self, partition: TopicPartition) -> bool:
        return partition in self._resting

    def raise_bounds(self, bounds: Mapping[TopicPartition, int]) -> None:
        """More of an input topic was processed."""
        for partition, bound in bounds.items():
            update = self._owners.get(partition)
            if update is None or update.is_active or partition not in update.limits:
                continue
            update.limits[partition] = max(bound, update.limits[partition])
            if partition in self._resting and update.positions[partition] < update.limits[partition]:
                self._resting.discard(partition)
                if not self._has_active:
                    self._consumer.resume([partition])

    def move_positions(self, updates: Iterable[Update]) -> None:
        """Markers of transactions are not delivered, so a partition may be at its end behind its last record."""
        for update in updates:
            for partition, at in update.positions.items():
                if self._owners.get(partition) is not update or partition in self._resting:
                    continue
                reached, bound = self._consumer.position(partition), update.bound(partition)
                update.positions[partition] = max(at, reached if bound is None else min(reached, bound))
                self._rest_at_bound(update, partition)

    def look_at_ends(self, update: Update) -> None:
        """Note where the changelogs of a copy end, as far as the last fetches said."""
        for partition, at in update.positions.items():
            limit = update.limits.get(partition)
            if limit is not None:
                update.known_ends[partition] = limit
            elif (lag := self._consumer.lag_records(partition)) is not None:
                update.known_ends[partition] = at + lag

    def take_events(self) -> Iterable[ConsumerEvent]:
        return self._consumer.take_events()

    def close(self) -> None:
        self._consumer.close()
