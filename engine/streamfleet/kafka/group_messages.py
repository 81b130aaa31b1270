"""The classic group protocol, one function per request: find the coordinator, join, sync, heartbeat, leave.

Called by coordinator.py and group_client.py. Turns typed arguments into Calls and responses into frozen values; who
asks when, and what follows from an answer, is in membership.py.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kafka.protocol.consumer.group import (  # type: ignore[import-untyped]
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from kafka.protocol.metadata.find_coordinator import (  # type: ignore[import-untyped]
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

from streamfleet.kafka.address import Address
from streamfleet.kafka.error_codes import ErrorCode, worst
from streamfleet.kafka.wire import PINNED, Call

PROTOCOL_TYPE = "consumer"
"""Any other type would do for the broker, but `describe` would refuse to show the group."""

NO_GENERATION = -1


class CoordinatorKind(enum.IntEnum):
    GROUP = 0
    TRANSACTION = 1


@dataclass(frozen=True)
class ConsumerGroupMetadata:
    """Who commits: checked by the broker on every offset commit, transactional or not."""

    group_id: str
    generation_id: int = NO_GENERATION
    member_id: str = ""
    group_instance_id: str | None = None


@dataclass(frozen=True)
class CoordinatorAnswer:
    code: ErrorCode
    address: Address
    message: str | None


@dataclass(frozen=True)
class JoinedMember:
    """One member as the leader sees it."""

    member_id: str
    group_instance_id: str | None
    subscription: bytes


@dataclass(frozen=True)
class JoinAnswer:
    code: ErrorCode
    generation_id: int
    member_id: str
    leader: str
    protocol_name: str | None
    skip_assignment: bool
    """A static leader came back: the group keeps its plan, and the leader must send none."""
    members: tuple[JoinedMember, ...]
    """Sorted by member id (the broker's order means nothing); empty for followers."""


@dataclass(frozen=True)
class SyncAnswer:
    code: ErrorCode
    assignment: bytes


@dataclass(frozen=True)
class PlainAnswer:
    """An answer that is only a code."""

    code: ErrorCode


def find_coordinator(key: str, kind: CoordinatorKind) -> Call[CoordinatorAnswer]:
    request = FindCoordinatorRequest(key_type=int(kind), coordinator_keys=[key])
    return Call("FindCoordinator", request, FindCoordinatorResponse, _coordinator)


def join_group(
    metadata: ConsumerGroupMetadata,
    *,
    protocol: str,
    subscription: bytes,
    session_timeout_ms: int,
    rebalance_timeout_ms: int,
    reason: str | None = None,
    protocol_type: str = PROTOCOL_TYPE,
) -> Call[JoinAnswer]:
    version = PINNED["JoinGroup"]
    offered = JoinGroupRequest.JoinGroupRequestProtocol(name=protocol, metadata=subscription, version=version)
    request = JoinGroupRequest(
        group_id=metadata.group_id,
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=rebalance_timeout_ms,
        member_id=metadata.member_id,
        group_instance_id=metadata.group_instance_id,
        protocol_type=protocol_type,
        protocols=[offered],
        reason=reason,
        version=version,
    )
    return Call("JoinGroup", request, JoinGroupResponse, _joined)


def sync_group(metadata: ConsumerGroupMetadata, *, protocol: str, assignments: Mapping[str, bytes]) -> Call[SyncAnswer]:
    """Leader: with everybody's assignment by member id. Follower: with none."""
    version = PINNED["SyncGroup"]
    request = SyncGroupRequest(
        group_id=metadata.group_id,
        generation_id=metadata.generation_id,
        member_id=metadata.member_id,
        group_instance_id=metadata.group_instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=protocol,
        assignments=[
            SyncGroupRequest.SyncGroupRequestAssignment(member_id=member_id, assignment=assignment, version=version)
            for member_id, assignment in sorted(assignments.items())
        ],
        version=version,
    )
    return Call("SyncGroup", request, SyncGroupResponse, _synced)


def heartbeat(metadata: ConsumerGroupMetadata) -> Call[PlainAnswer]:
    request = HeartbeatRequest(
        group_id=metadata.group_id,
        generation_id=metadata.generation_id,
        member_id=metadata.member_id,
        group_instance_id=metadata.group_instance_id,
        version=PINNED["Heartbeat"],
    )
    return Call("Heartbeat", request, HeartbeatResponse, _plain)


def leave_group(metadata: ConsumerGroupMetadata, *, reason: str) -> Call[PlainAnswer]:
    version = PINNED["LeaveGroup"]
    member = LeaveGroupRequest.MemberIdentity(
        member_id=metadata.member_id,
        group_instance_id=metadata.group_instance_id,
        reason=reason,
        version=version,
    )
    request = LeaveGroupRequest(group_id=metadata.group_id, members=[member], version=version)
    return Call("LeaveGroup", request, LeaveGroupResponse, _left)


def _coordinator(response: Any) -> CoordinatorAnswer:
    found = response.coordinators[0]
    return CoordinatorAnswer(ErrorCode.of(found.error_code), Address(found.host, found.port), found.error_message)


def _joined(response: Any) -> JoinAnswer:
    members = (
        JoinedMember(member.member_id, member.group_instance_id, bytes(member.metadata)) for member in response.members
    )
    return JoinAnswer(
        code=ErrorCode.of(response.error_code),
        generation_id=response.generation_id,
        member_id=response.member_id,
        leader=response.leader,
        protocol_name=response.protocol_name,
        skip_assignment=bool(response.skip_assignment),
        members=tuple(sorted(members, key=lambda member: member.member_id)),
    )


def _synced(response: Any) -> SyncAnswer:
    return SyncAnswer(ErrorCode.of(response.error_code), bytes(response.assignment or b""))


def _left(response: Any) -> PlainAnswer:
    # The top-level code is NONE even if the member was not known: the inner code tells.
    codes = [ErrorCode.of(response.error_code), *(ErrorCode.of(member.error_code) for member in response.members)]
    return PlainAnswer(worst(codes))


def _plain(response: Any) -> PlainAnswer:
    return PlainAnswer(ErrorCode.of(response.error_code))
