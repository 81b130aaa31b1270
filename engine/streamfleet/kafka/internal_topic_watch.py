"""InternalTopicWatch: whether the internal topics of a running app are still those that it was started with.

A changelog that was deleted and made anew has the name, and perhaps the offsets, of the old one, and nothing of what was in it.
Nobody tells that to a client, so ids are compared: at every assignment, before state is wiped because it does not fit its
changelog, and now and then. Made when the app starts, in a group that the members plan; where the broker plans, and makes the
topics, its part is in streams_group/internal_topics.py.
"""

from __future__ import annotations

from collections.abc import Mapping

import structlog

from streamfleet.kafka.client_errors import InternalTopicLostError
from streamfleet.kafka.internal_topic_manager import InternalTopicManager
from streamfleet.kafka.patience import PatientClock
from streamfleet.ports import TopicInfo
from streamfleet.topology.plan import TopologyPlan

log = structlog.get_logger(__name__)

KEEPS_STATE = "the local state is left as it is"


def refuse_replaced(recorded: Mapping[str, str], found: Mapping[str, TopicInfo]) -> None:
    """`recorded` are ids by name; a topic without one is new."""
    replaced = sorted(name for name, info in found.items() if recorded.get(name, info.topic_id) != info.topic_id)
    if replaced:
        raise InternalTopicLostError(
            f"internal topics were deleted and created again while the app was running: {', '.join(replaced)}",
            hint=f"reset the app, or restore the topics; {KEEPS_STATE}",
        )


class InternalTopicWatch:
    """`expected` are the topics as they were at the start. One that is missing may come back within `missing_timeout_ms`."""

    def __init__(
        self,
        manager: InternalTopicManager,
        plan: TopologyPlan,
        expected: Mapping[str, TopicInfo],
        clock: PatientClock,
        *,
        missing_timeout_ms: int,
    ) -> None:
        self._manager = manager
        self._plan = plan
        self._ids = {name: info.topic_id for name, info in expected.items()}
        self._clock = clock
        self._missing_timeout_ms = missing_timeout_ms
        self._missing_since_ms: int | None = None

    def ids(self) -> Mapping[str, str]:
        return self._ids

    def check(self) -> None:
        """Ask the cluster. May be called by any thread."""
        found = self._manager.found(self._plan)
        refuse_replaced(self._ids, found)
        missing = sorted(self._ids.keys() - found.keys())
        if not missing:
            self._missing_since_ms = None
            return
        now_ms = self._clock.now_ms()
        since_ms = self._missing_since_ms
        if since_ms is None:
            self._missing_since_ms = now_ms
            log.warning("internal topics are gone", missing=missing, timeout_ms=self._missing_timeout_ms)
        elif now_ms - since_ms >= self._missing_timeout_ms:
            raise InternalTopicLostError(
                f"internal topics were deleted while the app was running: {', '.join(missing)}",
                hint=f"restore the topics, or reset the app; {KEEPS_STATE}",
            )
