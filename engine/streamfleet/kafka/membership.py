"""Membership: one StreamThread's place in its group, whichever protocol the group speaks.

Two threads call it. The StreamThread polls events, acknowledges them with a report of what it owns, and commits;
`run_once()`, called by a thread of the worker (or by a test, by hand), does one bounded step and says after how many
milliseconds the next one is due. The steps are those of a member: group_member.py for the classic protocol, in which a
member plans for all (`classic_membership` puts it together), streams_group/member.py for groups that the broker plans.
What the two threads share is in membership_mailbox.py.

The rules that matter, for the classic protocol:
- JoinGroup is sent only after the StreamThread agreed to it, with the report it gave then. Until that, commits are
  possible, also when the group waits for this member; from then on they are not, until the next plan was polled.
- Tasks move in two rebalances: first the old owner's plan lacks them, it suspends and commits them with the new
  generation and rejoins; only then does the leader give them to somebody else.
- A lost connection is not a lost membership. Only the coordinator's word ends an assignment.
- A StreamThread that does not poll for `max.poll.interval.ms` has its tasks taken away by its own membership.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Mapping
from typing import Generic, Protocol

from streamfleet.ids import TopicPartition
from streamfleet.kafka.errors import CommitDeferredError, TaskMigratedError
from streamfleet.kafka.group_client import GroupClient
from streamfleet.kafka.group_events import Event
from streamfleet.kafka.group_member import GroupMember
from streamfleet.kafka.group_messages import ConsumerGroupMetadata
from streamfleet.kafka.group_protocol import GroupProtocol, PlanT, ReportT
from streamfleet.kafka.membership_mailbox import LeaveRequest, Mailbox
from streamfleet.kafka.offset_client import OffsetClient
from streamfleet.kafka.offset_messages import CommittedOffset
from streamfleet.kafka.patience import PatientClock
from streamfleet.kafka.tenure import Tenure
from streamfleet.kafka.transaction_client import TransactionClient
from streamfleet.ports import ProducerIdentity


def _nobody_waits() -> None:
    pass


class Member(Protocol):
    """The step machine of one protocol."""

    @property
    def phase(self) -> enum.Enum: ...

    @property
    def over(self) -> bool:
        """Whether nothing is left to do."""

    @property
    def leads(self) -> bool:
        """Whether this member plans for the group, as of its last rebalance."""

    def run_once(self) -> int:
        """One bounded step; after how many milliseconds the next one is due."""


class MemberClient(Protocol):
    """The lines over which the StreamThread's side asks."""

    @property
    def offsets(self) -> OffsetClient: ...

    @property
    def transactions(self) -> TransactionClient: ...


class Membership(Generic[ReportT, PlanT]):
    """`ReportT` is what the StreamThread tells the group, `PlanT` what it is told."""

    def __init__(self, client: MemberClient, mailbox: Mailbox[ReportT, PlanT], member: Member) -> None:
        self._client = client
        self._mailbox = mailbox
        self._member = member

    # --- what the StreamThread calls ---

    def start(self, report: ReportT) -> None:
        """Ask to be a member."""
        self._mailbox.start(report)

    def poll(self) -> Event[PlanT] | None:
        """The next event. Call it in every loop: silence is taken for a stuck thread."""
        return self._mailbox.next_event()

    def acknowledge(self, event: Event[PlanT], report: ReportT) -> None:
        """What the event asks for is done, and this is the state of things now."""
        self._mailbox.acknowledge(event, report)

    def enforce_rebalance(self, reason: str) -> None:
        self._mailbox.ask_for_rebalance(reason)

    def can_commit(self) -> bool:
        """True also while the group waits for this member to rejoin; false once the StreamThread has agreed to that."""
        return self._mailbox.commit_metadata is not None

    @property
    def is_surely_member(self) -> bool:
        """Whether the group cannot have given this member's tasks to others: it was heard less than a session time-out ago.
        May be asked by any thread, also after the process stood still.
        """
        return self._mailbox.is_surely_member

    @property
    def tenure(self) -> Tenure:
        """Until when nobody else runs this member's tasks: always the same object, which may be read by any thread."""
        return self._mailbox.tenure

    @property
    def leads_group(self) -> bool:
        """Whether it planned for the group in the last rebalance."""
        return self._member.leads

    def metadata(self) -> ConsumerGroupMetadata | None:
        """Who commits are made as now; None while there can be none."""
        return self._mailbox.commit_metadata

    def commit(self, offsets: Mapping[TopicPartition, CommittedOffset], timeout_ms: int) -> None:
        self._fenced(lambda metadata: self._client.offsets.commit(metadata, offsets, timeout_ms))

    def txn_commit_offsets(
        self, producer: ProducerIdentity, offsets: Mapping[TopicPartition, CommittedOffset], timeout_ms: int
    ) -> None:
        """Put the offsets into the producer's open transaction."""
        transactions = self._client.transactions
        self._fenced(lambda metadata: transactions.add_offsets(producer, metadata, offsets, timeout_ms))

    def txn_end_empty(self, producer: ProducerIdentity, *, commit: bool, timeout_ms: int) -> None:
        """End a transaction that has offsets but no records: the producer library would not."""
        self._client.transactions.end(producer, commit=commit, timeout_ms=timeout_ms)

    def fence(self, transactional_id: str, timeout_ms: int) -> None:
        """End whatever the dead owner of a task left open, before its committed offsets are read."""
        self._client.transactions.fence(transactional_id, timeout_ms)

    def committed(
        self, partitions: Collection[TopicPartition], timeout_ms: int
    ) -> dict[TopicPartition, CommittedOffset]:
        """Stable offsets of the partitions that have one."""
        return self._client.offsets.committed(partitions, timeout_ms)

    def leave(self, reason: str = "shut down", *, static_too: bool = False) -> None:
        """Leave when `run_once` comes to it. Static members only stop talking, so that a restart finds its tasks."""
        self._mailbox.ask_to_leave(LeaveRequest(reason, static_too))

    def close(self) -> None:
        """Close the connections of the StreamThread's side; those of the membership are closed when it is over."""
        self._client.offsets.close()
        self._client.transactions.close()

    # --- what the membership's thread calls ---

    @property
    def phase(self) -> enum.Enum:
        return self._member.phase

    @property
    def over(self) -> bool:
        """Whether nothing is left to do."""
        return self._member.over

    def run_once(self) -> int:
        """One bounded step; after how many milliseconds the next one is due."""
        return self._member.run_once()

    def _fenced(self, commit: Callable[[ConsumerGroupMetadata], None]) -> None:
        """Commit as the member this is now. A refusal is the end of the assignment, unless it came too late to matter."""
        while True:
            metadata = self._mailbox.commit_metadata
            if metadata is None:
                raise CommitDeferredError(
                    "there is no plan to commit under now", hint="commit after the next assignment"
                )
            try:
                return commit(metadata)
            except TaskMigratedError as error:
                if not self._mailbox.is_renewed(metadata):
                    self._mailbox.tell_refused(metadata, error)
                    raise


def classic_membership(
    client: GroupClient,
    protocol: GroupProtocol[ReportT, PlanT],
    clock: PatientClock,
    *,
    wake: Callable[[], None] = _nobody_waits,
    step_wait_ms: int = 20,
) -> Membership[ReportT, PlanT]:
    """`wake` is called when the StreamThread wants something; `step_wait_ms` bounds how long a step waits for an answer."""
    mailbox: Mailbox[ReportT, PlanT] = Mailbox(clock, wake)
    return Membership(client, mailbox, GroupMember(client, protocol, mailbox, clock, step_wait_ms))
