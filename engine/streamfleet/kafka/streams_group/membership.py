"""Puts a membership of a streams group together: the same Membership a StreamThread holds in a classic group.

Called by the wiring of an app with `group.protocol=streams`. The rules that matter here:
- The broker takes a task away first, and gives it to somebody else when this member has told it that it runs it no more: it is told
  so when the StreamThread has committed and closed it, under the epoch it was run under.
- Commits are possible as long as this is a member. Every one carries the epoch, and the broker refuses those of members it has
  given up.
- A lost connection is not a lost membership; a lost answer may have been a plan, so the broker is asked what it was.
"""

from __future__ import annotations

from collections.abc import Callable

from streamfleet.kafka.group_protocol import PlanT, ReportT
from streamfleet.kafka.membership import Membership
from streamfleet.kafka.membership_mailbox import Mailbox
from streamfleet.kafka.patience import PatientClock
from streamfleet.kafka.streams_group.client import StreamsGroupClient
from streamfleet.kafka.streams_group.member import StreamsGroupMember
from streamfleet.kafka.streams_group.protocol import StreamsGroupProtocol


def streams_group_membership(
    client: StreamsGroupClient,
    protocol: StreamsGroupProtocol[ReportT, PlanT],
    clock: PatientClock,
    *,
    wake: Callable[[], None] = lambda: None,
    step_wait_ms: int = 20,
) -> Membership[ReportT, PlanT]:
    """`wake` is called when the StreamThread wants something; `step_wait_ms` bounds how long a step waits for an answer."""
    mailbox: Mailbox[ReportT, PlanT] = Mailbox(clock, wake, commits_always=True)
    return Membership(client, mailbox, StreamsGroupMember(client, protocol, mailbox, clock, step_wait_ms))
