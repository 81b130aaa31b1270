"""What a membership needs from whoever knows about tasks, as a port: streamfleet.assignment implements it.

The membership carries reports up and plans down and does not look inside; so the same membership serves any assignor,
and nothing in this package knows what a task is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from streamfleet.kafka.consumer_protocol import Assignment, Subscription

ReportT = TypeVar("ReportT")
PlanT = TypeVar("PlanT")
ReportT_contra = TypeVar("ReportT_contra", contravariant=True)
PlanT_co = TypeVar("PlanT_co", covariant=True)


@dataclass(frozen=True)
class Subscriber:
    """One member of the group, as the leader gets to know it."""

    member_id: str
    group_instance_id: str | None
    subscription: Subscription


@dataclass(frozen=True)
class Received(Generic[PlanT_co]):
    """A member's part of the plan, and what the membership has to do about it."""

    plan: PlanT_co
    follow_up: bool = False
    """Another rebalance is about to follow: heartbeat more often, so that it is noticed soon."""
    must_rejoin: bool = False
    """This member has to start that rebalance, as soon as its StreamThread has done what the plan asks."""
    next_probe_ms: int | None = None
    """After which this member calls a rebalance of its own accord, if none has come before; None: never."""
    refusal: str | None = None
    """The leader will not have this member, or this member cannot go on with this plan; and why."""


class GroupProtocol(Protocol[ReportT_contra, PlanT_co]):
    """Turns reports into user data, everybody's reports into plans, and a plan's user data back into a plan."""

    @property
    def name(self) -> str:
        """The classic protocol's name: all members of a group must offer the same."""

    def subscribe(self, report: ReportT_contra, *, generation_id: int, counter: int) -> Subscription:
        """What to say when joining. A changed counter must change the bytes: that is what makes the broker rebalance."""

    def assign(self, subscribers: Sequence[Subscriber]) -> Mapping[str, Assignment]:
        """Leader only: one assignment per member id."""

    def receive(self, report: ReportT_contra, assignment: Assignment) -> Received[PlanT_co]:
        """What the leader decided for the member that joined with this report."""
