"""What a commit needs from around it, and what every guarantee does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from streamfleet.ids import TopicPartition
from streamfleet.ports import Producer, ProducerIdentity
from streamfleet.task.offsets import CommittedOffset
from streamfleet.task.stream_task import StreamTask


class GroupOffsets(Protocol):
    """The offsets of the group, fenced by its generation: a member that was thrown out cannot write them any more."""

    def commit(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> None: ...

    def commit_in_transaction(
        self, producer: ProducerIdentity, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> None: ...

    def end_transaction(self, producer: ProducerIdentity, *, commit: bool) -> None:
        """End a transaction in which nothing was produced: the client would not, and its offsets would stay pending."""

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, CommittedOffset]:
        """Stable offsets only: waits for open transactions that write them."""


class Commit(Protocol):
    """How one StreamThread commits all of its tasks together."""

    @property
    def producer(self) -> Producer:
        """Where tasks send to. The same object for the life of the thread, whatever clients come and go behind it."""

    def open(self) -> None:
        """Make ready to send. Fences a former owner of this thread's identity."""

    def commit(self, tasks: Sequence[StreamTask]) -> dict[TopicPartition, CommittedOffset]:
        """Commit the tasks that have something to commit; returns the offsets. Raises before anything is written to a store, or
        after everything is.
        """

    def abort(self) -> None:
        """Take back what was sent since the last commit, as far as the guarantee can."""

    def close(self) -> None: ...
