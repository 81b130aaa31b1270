"""What a member of a streams group needs from whoever knows about tasks, as a port: streamfleet.assignment implements it.

The broker plans, so there is less of it than in the classic protocol: names are translated, and nothing is decided.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from streamfleet.kafka.group_protocol import PlanT_co, ReportT_contra
from streamfleet.kafka.streams_group.values import EndpointPartitions, TaskSets


class StreamsGroupProtocol(Protocol[ReportT_contra, PlanT_co]):
    def owned(self, report: ReportT_contra) -> TaskSets:
        """What the member has not let go of."""

    def requests_shutdown(self, report: ReportT_contra) -> bool:
        """Whether the member wants the whole application to stop."""

    def plan(self, tasks: TaskSets, endpoints: Sequence[EndpointPartitions], *, shutdown: bool) -> PlanT_co:
        """What the broker wants of the member, and where the others answer queries."""
