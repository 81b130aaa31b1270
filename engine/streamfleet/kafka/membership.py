"""Membership: one StreamThread's place in its group, over the classic protocol.

Two threads call it. The StreamThread polls events, acknowledges them with a report of what it owns, and commits;
`run_once()`, called by a thread of the worker (or by a test, by hand), does one bounded step and says after how many
milliseconds the next one is due. The steps are in group_member.py; what the two threads share is in
membership_mailbox.py.

The rules that matter:
- JoinGroup is sent only after the StreamThread agreed to it, with the report it gave then. Until that, commits are
  possible, also when the group waits for this member; from then on they are not, until the next plan was polled.
- Tasks move in two rebalances: first the old owner's plan lacks them, it suspends and commits them with the new
  generation and rejoins; only then does the leader give them to somebody else.
- A lost connection is not a lost membership. Only the coordinator's word ends an assignment.
- A StreamThread that does not poll for `max.poll.interval.ms` has its tasks taken away by its own membership.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Generic

from streamfleet.ids import TopicPartition
from streamfleet.kafka.errors import CommitDeferredError, TaskMigratedError
from streamfleet.kafka.group_client import GroupClient
from streamfleet.kafka.group_events import Event
from streamfleet.kafka.group_member import GroupMember
from streamfleet.kafka.group_messages import ConsumerGroupMetadata
from streamfleet.kafka.group_protocol import GroupProtocol, PlanT, ReportT
from streamfleet.kafka.membership_mailbox import LeaveRequest, Mailbox
from streamfleet.kafka.membership_phases import MembershipPhase
from streamfleet.kafka.offset_messages import CommittedOffset
from streamfleet.kafka.patience import PatientClock
from streamfleet.kafka.transaction_messages import ProducerIdentity


def _nobody_waits() -> None:
    pass


class Membership(Generic[ReportT, PlanT]):
    """`ReportT` is what the StreamThread tells the group, `PlanT` what it is told."""

    def __init__(
        self,
        client: GroupClient,
        protocol: GroupProtocol[ReportT, PlanT],
        clock: PatientClock,
        *,
        wake: Callable[[], None] = _nobody_waits,
        step_wait_ms: int = 20,
    ) -> None:
        """`wake` is called when the StreamThread wants something; `step_wait_ms` bounds how long a step waits for an answer."""
        self._client = client
        self._mailbox: Mailbox[ReportT, PlanT] = Mailbox(clock, wake)
        self._member = GroupMember(client, protocol, self._mailbox, clock, step_wait_ms)

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

    def metadata(self) -> ConsumerGroupMetadata | None:
        """Who commits are made as now; None while there can be none."""
        return self._mailbox.commit_metadata

    def commit(self, offsets: Mapping[TopicPartition, CommittedOffset], timeout_ms: int) -> None:
        metadata = self._commit_metadata()
        try:
            self._client.offsets.commit(metadata, offsets, timeout_ms)
        except TaskMigratedError as error:
            self._mailbox.tell_refused(metadata, error)
            raise

    def txn_commit_offsets(
        self, producer: ProducerIdentity, offsets: Mapping[TopicPartition, CommittedOffset], timeout_ms: int
    ) -> None:
        """Put the offsets into the producer's open transaction."""
        metadata = self._commit_metadata()
        try:
            self._client.transactions.add_offsets(producer, metadata, offsets, timeout_ms)
        except TaskMigratedError as error:
            self._mailbox.tell_refused(metadata, error)
            raise

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
    def phase(self) -> MembershipPhase:
        return self._member.phase

    @property
    def over(self) -> bool:
        """Whether nothing is left to do."""
        return self._member.over

    def run_once(self) -> int:
        """One bounded step; after how many milliseconds the next one is due."""
        return self._member.run_once()

    def _commit_metadata(self) -> ConsumerGroupMetadata:
        metadata = self._mailbox.commit_metadata
        if metadata is None:
            raise CommitDeferredError("there is no plan to commit under now", hint="commit after the next assignment")
        return metadata
