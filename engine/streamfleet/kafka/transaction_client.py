"""The part of a transaction that is not left to the producer library.

Called by membership.py on behalf of the StreamThread, and by whoever takes over tasks of a dead thread (`fence`).
Offsets go into the transaction here because the library's own call never returns after its coordinator restarts; a
transaction without records is ended here because the library does not send EndTxn for one.

Order of a transaction: produce, flush, `add_offsets`, then the producer's commit, or `end` if nothing was produced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from streamfleet.errors import StreamsError
from streamfleet.ids import TopicPartition
from streamfleet.kafka.client_errors import FencedProducerError, UnknownTransactionOutcomeError
from streamfleet.kafka.coordinator import CoordinatorLine
from streamfleet.kafka.error_codes import NOT_ALLOWED, PRODUCER_GONE, ErrorCode
from streamfleet.kafka.errors import (
    AuthorizationError,
    GroupTimeoutError,
    OffsetRejectedError,
    TransactionAbortableError,
)
from streamfleet.kafka.group_messages import ConsumerGroupMetadata, CoordinatorKind
from streamfleet.kafka.offset_client import check_offsets, commit_error
from streamfleet.kafka.offset_messages import CommittedOffset
from streamfleet.kafka.patience import PatientClock
from streamfleet.kafka.transaction_messages import (
    add_offsets_to_txn,
    end_txn,
    init_producer_id,
    txn_offset_commit,
)
from streamfleet.kafka.wire import AnswerT, Call
from streamfleet.ports import ProducerIdentity

CONCURRENT_PAUSE_MS = 2
"""The last transaction's markers are being written: a matter of milliseconds."""
FENCE_TRANSACTION_TIMEOUT_MS = 10_000
"""No transaction is begun under a fenced id; the broker wants a number."""

LineFor = Callable[[str, CoordinatorKind], CoordinatorLine]


class TransactionClient:
    """Used by one thread. Keeps a line to the coordinator of the group, and one per transactional id it was given."""

    def __init__(self, group_id: str, line_for: LineFor, clock: PatientClock) -> None:
        self._line_for = line_for
        self._clock = clock
        self._group_line = line_for(group_id, CoordinatorKind.GROUP)
        self._lines: dict[str, CoordinatorLine] = {}

    def add_offsets(
        self,
        producer: ProducerIdentity,
        metadata: ConsumerGroupMetadata,
        offsets: Mapping[TopicPartition, CommittedOffset],
        timeout_ms: int,
    ) -> None:
        """Make the offsets part of the producer's open transaction, if this member is a current one of its group.

        GroupTimeoutError: they may become part of it, or of the producer's next one, at any time later; discard the producer.
        """
        check_offsets(offsets)
        deadline_ms = self._clock.now_ms() + timeout_ms
        line = self._line_of(producer.transactional_id)
        added = self._ask(line, add_offsets_to_txn(producer, metadata.group_id), deadline_ms)
        if added.code is not ErrorCode.NONE:
            raise _transaction_error(added.code, producer.transactional_id)
        answer = self._ask(self._group_line, txn_offset_commit(producer, metadata, offsets), deadline_ms)
        if self._group_line.may_arrive_late:
            raise GroupTimeoutError(
                f"offsets of group {metadata.group_id} were not acknowledged in time; they were sent again, and may arrive twice",
                hint="is the broker overloaded? the work since the last commit is done again",
            )
        if answer.code is ErrorCode.NONE:
            return
        refused: StreamsError = commit_error(answer)
        if isinstance(refused, OffsetRejectedError):
            refused = _transaction_error(answer.code, producer.transactional_id)
        raise refused

    def end(self, producer: ProducerIdentity, *, commit: bool, timeout_ms: int) -> None:
        """End a transaction in which nothing was produced. UnknownTransactionOutcomeError: nobody knows whether it ended."""
        deadline_ms = self._clock.now_ms() + timeout_ms
        line = self._line_of(producer.transactional_id)
        try:
            answer = self._ask(line, end_txn(producer, commit=commit), deadline_ms, may_resend=False)
        except GroupTimeoutError as error:
            raise UnknownTransactionOutcomeError(error.fact, code="REQUEST_TIMED_OUT", hint=error.hint) from error
        if answer.code is not ErrorCode.NONE:
            raise _transaction_error(answer.code, producer.transactional_id)

    def fence(self, transactional_id: str, timeout_ms: int) -> None:
        """Abort the open transaction of a producer that is gone, and make sure it stays gone.

        Returns when its markers are written. Without this, readers and new owners wait for the transaction's time-out
        and up to ten seconds more.
        """
        deadline_ms = self._clock.now_ms() + timeout_ms
        line = self._line_for(transactional_id, CoordinatorKind.TRANSACTION)
        try:
            call = init_producer_id(transactional_id, transaction_timeout_ms=FENCE_TRANSACTION_TIMEOUT_MS)
            answer = self._ask(line, call, deadline_ms)
        finally:
            line.close()
        if answer.code is not ErrorCode.NONE:
            raise _transaction_error(answer.code, transactional_id)

    def close(self) -> None:
        for line in (self._group_line, *self._lines.values()):
            line.close()

    def _line_of(self, transactional_id: str) -> CoordinatorLine:
        if transactional_id not in self._lines:
            self._lines[transactional_id] = self._line_for(transactional_id, CoordinatorKind.TRANSACTION)
        return self._lines[transactional_id]

    def _ask(self, line: CoordinatorLine, call: Call[AnswerT], deadline_ms: int, *, may_resend: bool = True) -> AnswerT:
        """The answer, with patience for a transaction that is just ending."""
        while True:
            answer = line.ask(call, deadline_ms, may_resend=may_resend)
            if answer.code is not ErrorCode.CONCURRENT_TRANSACTIONS:
                return answer
            if self._clock.now_ms() >= deadline_ms:
                raise GroupTimeoutError(
                    f"{call.name} waited in vain for an earlier transaction to end", hint="discard the producer"
                )
            self._clock.pause_ms(CONCURRENT_PAUSE_MS)


def _transaction_error(code: ErrorCode, transactional_id: str) -> StreamsError:
    if code in PRODUCER_GONE:
        return FencedProducerError(
            f"the producer of {transactional_id} is fenced ({code.name})",
            code=code.name,
            hint="discard it and make a new one",
        )
    if code in NOT_ALLOWED:
        return AuthorizationError(
            f"not allowed to use transactional id {transactional_id} ({code.name})",
            hint="grant WRITE on the transactional ids that begin with the application id, and READ on its group",
        )
    return TransactionAbortableError(
        f"the transaction of {transactional_id} cannot go on ({code.name})", hint="abort it and begin again"
    )
