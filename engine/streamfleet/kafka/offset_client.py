"""Committed offsets, read and written by a thread that waits for the answer: the group's own, fenced by generation.

Called by membership.py on behalf of the StreamThread. Codes become errors that say what to do next; what is only a
matter of time is retried until the caller's deadline. Offsets inside a transaction are in transaction_client.py.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from streamfleet.ids import TopicPartition
from streamfleet.kafka.coordinator import CoordinatorLine
from streamfleet.kafka.error_codes import ASSIGNMENT_LOST, NOT_ALLOWED, ErrorCode
from streamfleet.kafka.errors import (
    AuthorizationError,
    CommitDeferredError,
    FencedInstanceError,
    GroupError,
    GroupTimeoutError,
    OffsetRejectedError,
    TaskMigratedError,
    UnstableOffsetError,
)
from streamfleet.kafka.group_messages import ConsumerGroupMetadata
from streamfleet.kafka.offset_messages import (
    MAX_METADATA_BYTES,
    CommittedOffset,
    PartitionCodes,
    offset_commit,
    offset_fetch,
)
from streamfleet.kafka.patience import PatientClock

UNSTABLE_PAUSE_MS = 5
"""A transaction that is just being committed keeps its offsets unstable for a few milliseconds."""
METADATA_PAUSE_MS = 100
"""A broker that has just started may not know a topic yet."""


class OffsetClient:
    """Used by one thread."""

    def __init__(self, group_id: str, line: CoordinatorLine, clock: PatientClock) -> None:
        self._group_id = group_id
        self._line = line
        self._clock = clock

    def commit(
        self, metadata: ConsumerGroupMetadata, offsets: Mapping[TopicPartition, CommittedOffset], timeout_ms: int
    ) -> None:
        """Returns when the offsets are stored. GroupTimeoutError: they may or may not be."""
        check_offsets(offsets)
        deadline_ms = self._clock.now_ms() + timeout_ms
        while offsets:
            answer = self._line.ask(offset_commit(metadata, offsets), deadline_ms)
            if answer.code is ErrorCode.NONE:
                return
            if answer.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or self._clock.now_ms() >= deadline_ms:
                raise commit_error(answer)
            self._clock.pause_ms(METADATA_PAUSE_MS)

    def committed(
        self, partitions: Collection[TopicPartition], timeout_ms: int, *, stable: bool = True
    ) -> dict[TopicPartition, CommittedOffset]:
        """Offsets of the partitions that have one. Waits for open transactions: an offset that a transaction is about to
        overwrite is not what a new owner may start from. Not `stable`: nothing is started from them.
        """
        deadline_ms = self._clock.now_ms() + timeout_ms
        unstable: list[TopicPartition] = []
        while partitions:
            try:
                answer = self._line.ask(offset_fetch(self._group_id, partitions, require_stable=stable), deadline_ms)
            except GroupTimeoutError as error:
                raise (_still_open(unstable) if unstable else error) from error
            if answer.code is ErrorCode.NONE:
                return dict(answer.offsets)
            if answer.code is not ErrorCode.UNSTABLE_OFFSET_COMMIT:
                raise _fetch_error(answer.code)
            unstable = [p for p, code in answer.codes.items() if code is ErrorCode.UNSTABLE_OFFSET_COMMIT]
            if self._clock.now_ms() >= deadline_ms:
                raise _still_open(unstable)
            self._clock.pause_ms(UNSTABLE_PAUSE_MS)
        return {}

    def close(self) -> None:
        self._line.close()


def check_offsets(offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
    """Refuse what the broker would store without a word."""
    for partition, committed in offsets.items():
        if committed.offset < 0:
            raise OffsetRejectedError(f"offset {committed.offset} of {partition} is negative", hint="this is a defect")
        if len(committed.metadata.encode()) > MAX_METADATA_BYTES:
            raise OffsetRejectedError(
                f"the offset metadata of {partition} is longer than {MAX_METADATA_BYTES} bytes",
                hint="keep less processor metadata in this task",
            )


def commit_error(answer: PartitionCodes) -> GroupError:
    """What a refused commit means, transactional or not."""
    code = answer.code
    if code is ErrorCode.FENCED_INSTANCE_ID:
        return FencedInstanceError(
            "the commit was refused: another process has the same group.instance.id", hint="give every slot its own"
        )
    if code in ASSIGNMENT_LOST:
        return TaskMigratedError(
            f"the commit was refused with {code.name}: the group went on without this member",
            hint="drop the tasks and rejoin",
        )
    if code is ErrorCode.REBALANCE_IN_PROGRESS:
        return CommitDeferredError("a rebalance is under way", hint="commit after the next assignment")
    if code in NOT_ALLOWED:
        return AuthorizationError(
            f"not allowed to commit: {answer.failed()}", hint="grant READ on the group and on every source topic"
        )
    return OffsetRejectedError(f"offsets were refused: {answer.failed()}", hint="do these partitions still exist?")


def _still_open(unstable: Collection[TopicPartition]) -> UnstableOffsetError:
    return UnstableOffsetError(
        f"a transaction with the offsets of {', '.join(map(str, unstable))} is still open",
        hint="ask again: it ends with its producer, or with its time-out if its owner is gone",
    )


def _fetch_error(code: ErrorCode) -> GroupError:
    if code in NOT_ALLOWED:
        return AuthorizationError(
            f"not allowed to read committed offsets ({code.name})",
            hint="grant READ on the group and on every source topic",
        )
    return OffsetRejectedError(f"committed offsets cannot be read: {code.name}", hint="look at the broker's log")
