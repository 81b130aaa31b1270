"""What a membership tells its StreamThread, in the order it happened.

Every event but Fatal is answered with `Membership.acknowledge(event, report)` once the StreamThread has done its part;
JoinGroup is never sent before that, so whatever the group is told about this member is true.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeAlias

from streamfleet.kafka.group_protocol import PlanT


@dataclass(frozen=True)
class Rebalancing:
    """The group will rebalance. Tasks are still ours and commits still possible, until this is acknowledged."""

    number: int
    reason: str


@dataclass(frozen=True)
class Assigned(Generic[PlanT]):
    """The plan of a new generation. Tasks that are not in it are suspended and committed, with the new generation, before
    this is acknowledged.
    """

    number: int
    generation_id: int
    member_id: str
    plan: PlanT
    follow_up: bool


@dataclass(frozen=True)
class Lost:
    """The group went on without this member: others may own its tasks already. Close them without a commit."""

    number: int
    reason: str


@dataclass(frozen=True)
class Fatal:
    """This member cannot be one; it has left the group. Nothing follows."""

    number: int
    reason: str
    cause: Exception | None = None


Event: TypeAlias = Rebalancing | Assigned[PlanT] | Lost | Fatal
