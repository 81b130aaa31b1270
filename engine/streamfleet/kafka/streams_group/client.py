"""Everything one member of a streams group says to its coordinators, over lines of its own.

Called by member.py, which holds the state; this holds the facts about the member and the connections. No answer takes long here, so
one line serves all that is said about the group.

    group line       heartbeat, leave, describe  advanced by the membership's thread
    offsets          commit, committed           blocking, StreamThread
    transactions     add_offsets, end, fence     blocking, StreamThread
"""

from __future__ import annotations

from dataclasses import dataclass

from streamfleet.kafka.connection import Connector
from streamfleet.kafka.coordinator import CoordinatorLine, RetrySettings
from streamfleet.kafka.group_messages import ConsumerGroupMetadata, CoordinatorKind
from streamfleet.kafka.offset_client import OffsetClient
from streamfleet.kafka.outage import Outage
from streamfleet.kafka.patience import PatientClock
from streamfleet.kafka.streams_group.describe import DescribeAnswer, describe
from streamfleet.kafka.streams_group.heartbeat import LEAVE_EPOCH, HeartbeatAnswer, MemberFacts, heartbeat
from streamfleet.kafka.streams_group.values import TaskSets
from streamfleet.kafka.transaction_client import TransactionClient

LEAST_PATIENCE_MS = 2_000


@dataclass(frozen=True)
class StreamsGroupSettings:
    """What a member decides by itself; how often it heartbeats and when it is given up, the broker says."""

    max_poll_interval_ms: int = 300_000
    """A StreamThread that does not step for this long gives its tasks up."""
    missing_source_timeout_ms: int = 5_000
    """How long the broker may miss a topic that the app reads."""
    settling_heartbeat_ms: int = 200
    """The interval while the group changes: a task that another member gives up is told with the next heartbeat only."""


class StreamsGroupClient:
    """The lines of one member."""

    def __init__(
        self,
        facts: MemberFacts,
        settings: StreamsGroupSettings,
        connector: Connector,
        clock: PatientClock,
        *,
        retry: RetrySettings | None = None,
        outage: Outage | None = None,
    ) -> None:
        self.facts = facts
        self.settings = settings
        self._connector = connector
        self._clock = clock
        self._retry = retry
        self._outage = outage
        self._group_line = self._line(facts.group_id)
        self.offsets = OffsetClient(facts.group_id, self._line(facts.group_id), clock)
        self.transactions = TransactionClient(facts.group_id, self._line, clock)

    def metadata(self, member_epoch: int) -> ConsumerGroupMetadata:
        return ConsumerGroupMetadata(self.facts.group_id, member_epoch, self.facts.member_id)

    def begin_heartbeat(
        self, member_epoch: int, owned: TaskSets, *, endpoint_epoch: int, shutdown: bool, interval_ms: int
    ) -> None:
        call = heartbeat(
            self.facts,
            member_epoch=member_epoch,
            owned=owned,
            endpoint_epoch=endpoint_epoch,
            shutdown_application=shutdown,
        )
        self._group_line.begin(call, timeout_ms=max(LEAST_PATIENCE_MS, 2 * interval_ms))

    def begin_leave(self) -> None:
        self._group_line.cancel()
        self._group_line.begin(heartbeat(self.facts, member_epoch=LEAVE_EPOCH))

    def begin_describe(self) -> None:
        self._group_line.begin(describe(self.facts.group_id))

    def advance(self, wait_ms: int) -> HeartbeatAnswer | DescribeAnswer | None:
        return self._group_line.advance(wait_ms)

    @property
    def busy(self) -> bool:
        return self._group_line.busy

    @property
    def was_resent(self) -> bool:
        """Whether the last request was sent more than once: what the broker answered first, nobody has read."""
        return self._group_line.was_resent

    def cancel(self) -> None:
        self._group_line.cancel()

    def close(self) -> None:
        """Close the membership's own line; offsets and transactions belong to the StreamThread."""
        self._group_line.close()

    def _line(self, key: str, kind: CoordinatorKind = CoordinatorKind.GROUP) -> CoordinatorLine:
        return CoordinatorLine(self._connector, self._clock, key, kind, self._retry, self._outage)
