"""A Commit that counts: how often, how long, how often in vain. Wraps the one of the guarantee; behaves like it."""

from __future__ import annotations

from collections.abc import Sequence

from streamfleet.commit.api import Commit
from streamfleet.ids import TopicPartition
from streamfleet.metrics import ThreadCounts
from streamfleet.ports import Producer
from streamfleet.task.offsets import CommittedOffset
from streamfleet.task.stream_task import StreamTask


class MeteredCommit:
    """Implements Commit."""

    def __init__(self, inner: Commit, counts: ThreadCounts) -> None:
        self._inner = inner
        self._counts = counts

    @property
    def producer(self) -> Producer:
        return self._inner.producer

    def open(self) -> None:
        self._inner.open()

    def commit(self, tasks: Sequence[StreamTask]) -> dict[TopicPartition, CommittedOffset]:
        if not any(task.commit_needed for task in tasks):
            return self._inner.commit(tasks)  # nothing will happen: that is no commit to count
        with self._counts.timed_commit():
            return self._inner.commit(tasks)

    def abort(self) -> None:
        self._inner.abort()

    def close(self) -> None:
        self._inner.close()
