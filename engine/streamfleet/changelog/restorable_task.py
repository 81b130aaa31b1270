"""What a task lets the StateUpdater do with it, whether it is to run when it is restored or is a copy that is kept warm."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from streamfleet.ids import TaskId, TopicPartition
from streamfleet.records import RawRecord


class RestorableTask(Protocol):
    @property
    def task_id(self) -> TaskId: ...

    @property
    def source_changelogs(self) -> frozenset[str]:
        """Changelogs that are input topics of the app: they may be read only as far as they were processed."""

    @property
    def changelog_stores(self) -> Mapping[str, str]:
        """Changelog topic -> name of the store that it restores."""

    def restore_positions(self) -> dict[TopicPartition, int | None]:
        """Where to go on reading each changelog; None: at its beginning, because nothing of it is here."""

    def restore(self, partition: TopicPartition, records: Iterable[RawRecord], last_offset: int) -> None:
        """Apply changelog records up to `last_offset`, and remember that: rows and offset are written together."""
