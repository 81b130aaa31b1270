"""Everything one member says to its coordinators, over lines of its own.

Called by membership.py, which holds the state; this holds the settings and the connections. Four lines: a JoinGroup or
SyncGroup may wait for minutes and would hold up whatever is behind it, so heartbeats have a line of their own, and so
have the offsets, which another thread asks for.

    group line       join, sync               advanced by the membership's thread
    heartbeat line   heartbeat, leave         advanced by the membership's thread
    offsets          commit, committed        blocking, StreamThread
    transactions     add_offsets, end, fence  blocking, StreamThread
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streamfleet.errors import ConfigError
from streamfleet.kafka.connection import Connector
from streamfleet.kafka.coordinator import CoordinatorLine, RetrySettings
from streamfleet.kafka.group_messages import (
    ConsumerGroupMetadata,
    CoordinatorKind,
    JoinAnswer,
    PlainAnswer,
    SyncAnswer,
    heartbeat,
    join_group,
    leave_group,
    sync_group,
)
from streamfleet.kafka.offset_client import OffsetClient
from streamfleet.kafka.outage import Outage
from streamfleet.kafka.patience import PatientClock
from streamfleet.kafka.transaction_client import TransactionClient

JOIN_GRACE_MS = 10_000
"""A JoinGroup not answered this long after the rebalance time-out never will be: the group is wedged, or the line dead."""


@dataclass(frozen=True)
class GroupSettings:
    """One member's place in its group."""

    group_id: str
    """The application id."""
    group_instance_id: str | None = None
    """Set: a static member, which keeps its tasks over a restart within the session time-out."""
    session_timeout_ms: int = 45_000
    """A member silent for this long is thrown out; brokers accept 6 s to 30 min."""
    max_poll_interval_ms: int = 300_000
    """A StreamThread that does not step for this long gives its tasks up; also how long a rebalance waits for it."""
    heartbeat_interval_ms: int = 500
    """How soon a rebalance is noticed. A heartbeat costs some 60 microseconds."""
    follow_up_heartbeat_ms: int = 50
    """The interval while the leader has announced that a second rebalance follows."""

    def __post_init__(self) -> None:
        if self.heartbeat_interval_ms * 3 > self.session_timeout_ms:
            raise ConfigError(
                f"setting heartbeat.interval.ms cannot be {self.heartbeat_interval_ms} with a session time-out of "
                f"{self.session_timeout_ms} ms",
                hint="at most a third of session.timeout.ms, so that one lost heartbeat loses nothing",
            )


class GroupClient:
    """The lines of one member."""

    def __init__(
        self,
        settings: GroupSettings,
        connector: Connector,
        clock: PatientClock,
        *,
        protocol: str,
        retry: RetrySettings | None = None,
        outage: Outage | None = None,
    ) -> None:
        self.settings = settings
        self._connector = connector
        self._clock = clock
        self._protocol = protocol
        self._retry = retry
        self._outage = outage
        self._group_line = self._line(settings.group_id)
        self._heartbeat_line = self._line(settings.group_id)
        self.offsets = OffsetClient(settings.group_id, self._line(settings.group_id), clock)
        self.transactions = TransactionClient(settings.group_id, self._line, clock)

    def metadata(self, member_id: str, generation_id: int) -> ConsumerGroupMetadata:
        return ConsumerGroupMetadata(self.settings.group_id, generation_id, member_id, self.settings.group_instance_id)

    # --- join and sync ---

    def begin_join(self, metadata: ConsumerGroupMetadata, subscription: bytes, reason: str) -> None:
        call = join_group(
            metadata,
            protocol=self._protocol,
            subscription=subscription,
            session_timeout_ms=self.settings.session_timeout_ms,
            rebalance_timeout_ms=self.settings.max_poll_interval_ms,
            reason=reason,
        )
        self._group_line.begin(call, timeout_ms=self.settings.max_poll_interval_ms + JOIN_GRACE_MS)

    def begin_sync(self, metadata: ConsumerGroupMetadata, assignments: Mapping[str, bytes]) -> None:
        call = sync_group(metadata, protocol=self._protocol, assignments=assignments)
        self._group_line.begin(call, timeout_ms=self.settings.max_poll_interval_ms + JOIN_GRACE_MS)

    def advance_group(self, wait_ms: int) -> JoinAnswer | SyncAnswer | None:
        return self._group_line.advance(wait_ms)

    @property
    def group_busy(self) -> bool:
        return self._group_line.busy

    @property
    def group_waits(self) -> bool:
        """Whether JoinGroup or SyncGroup is with the coordinator."""
        return self._group_line.sent

    def cancel_group(self) -> None:
        self._group_line.cancel()

    # --- heartbeat and leave ---

    def begin_heartbeat(self, metadata: ConsumerGroupMetadata) -> None:
        # A third of the session: a broker this slow has to be asked again before the session is over.
        self._heartbeat_line.begin(heartbeat(metadata), timeout_ms=max(1_000, self.settings.session_timeout_ms // 3))

    def begin_leave(self, metadata: ConsumerGroupMetadata, reason: str) -> None:
        self._heartbeat_line.cancel()
        self._heartbeat_line.begin(leave_group(metadata, reason=reason))

    def advance_heartbeat(self, wait_ms: int) -> PlainAnswer | None:
        return self._heartbeat_line.advance(wait_ms)

    @property
    def heartbeat_busy(self) -> bool:
        return self._heartbeat_line.busy

    def cancel_heartbeat(self) -> None:
        self._heartbeat_line.cancel()

    def close(self) -> None:
        """Close the membership's own lines; offsets and transactions belong to the StreamThread."""
        self._group_line.close()
        self._heartbeat_line.close()

    def _line(self, key: str, kind: CoordinatorKind = CoordinatorKind.GROUP) -> CoordinatorLine:
        return CoordinatorLine(self._connector, self._clock, key, kind, self._retry, self._outage)
