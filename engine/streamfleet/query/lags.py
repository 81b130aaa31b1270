"""How far the stores of this process are behind their changelogs. Called by KafkaStreams; asks the broker once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamfleet.errors import StoreUnavailableError
from streamfleet.ids import TopicPartition
from streamfleet.ports import Admin, OffsetKind
from streamfleet.query.store_catalogue import StoreCatalogue, StorePlace
from streamfleet.task.phases import TaskPhase
from streamfleet.task.standby_task import StandbyTask
from streamfleet.task.stream_task import StreamTask
from streamfleet.thread.stream_thread import StreamThread


@dataclass(frozen=True)
class LagInfo:
    """Offsets of a changelog partition: the next to be applied, and the next to be written."""

    current_offset: int
    end_offset: int

    @property
    def lag_records(self) -> int:
        return max(0, self.end_offset - self.current_offset)


def local_store_lags(
    catalogue: StoreCatalogue, threads: Sequence[StreamThread[Any, Any]], admin: Admin
) -> dict[str, dict[int, LagInfo]]:
    """Store -> partition -> how far. The owner of a partition writes the changelog itself and is never behind it."""
    here = [
        (place, partition, task)
        for place in catalogue.places.values()
        for partition in range(place.partitions)
        if (task := _task_of(threads, place, partition)) is not None
    ]
    ends = admin.list_offsets(
        sorted({TopicPartition(place.changelog, partition) for place, partition, _ in here if place.is_logged}),
        OffsetKind.HIGH_WATERMARK,
    )
    lags: dict[str, dict[int, LagInfo]] = {}
    for place, partition, task in here:
        end = ends.get(TopicPartition(place.changelog, partition))
        if end is None:
            continue
        current = end if _runs(task) else _applied(task, place.changelog)
        if current is not None:
            lags.setdefault(place.name, {})[partition] = LagInfo(current, end)
    return lags


def _task_of(
    threads: Sequence[StreamThread[Any, Any]], place: StorePlace, partition: int
) -> StreamTask | StandbyTask | None:
    for thread in threads:
        task_id = place.task(partition)
        task = thread.tasks.tasks.get(task_id) or thread.tasks.standbys.tasks.get(task_id)
        if task is not None:
            return task
    return None


def _runs(task: StreamTask | StandbyTask) -> bool:
    return isinstance(task, StreamTask) and task.phase is TaskPhase.RUNNING


def _applied(task: StreamTask | StandbyTask, changelog: str) -> int | None:
    """None if the task was closed meanwhile."""
    committed = task.committed_stores
    if committed is None:
        return None
    try:
        with committed.reading() as stores:
            offsets: Mapping[str, int] = stores.changelog_offsets()
    except StoreUnavailableError:
        return None
    return offsets.get(changelog, -1) + 1
