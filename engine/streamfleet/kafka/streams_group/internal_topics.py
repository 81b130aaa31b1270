"""Internal topics of a group that the broker plans: it creates those that are missing, also one that was deleted by mistake.

BrokerMadeTopics is made when the app starts and asked for topic ids by the task factory whenever a task is opened. A changelog that
is made anew is empty, and whoever restored from it would lose what the old one had. So what the broker does silently is told here:
- at the start, by topics that are missing although the app has run (some of its topics are there, and it has committed offsets);
- while the app runs, by ids that change: looked at now and then and at every assignment (`check`), and whenever a task is opened
  (`ids`). A member
  whose heartbeat falls into the moment in which a topic is missing knows at once (status_watch.py).
State on disk knows the ids of its changelogs besides, and is refused by the store if they differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from streamfleet.kafka.client_errors import InternalTopicLostError
from streamfleet.kafka.internal_topic_manager import InternalTopicManager
from streamfleet.kafka.internal_topic_watch import refuse_replaced
from streamfleet.kafka.patience import PatientClock
from streamfleet.ports import TopicInfo
from streamfleet.topology.plan import TopologyPlan

FRESH_MS = 1_000
"""Tasks that are opened together ask once."""
CREATION_PATIENCE_MS = 5_000
"""The broker creates the topics of a new app for another member, perhaps just now."""
CREATION_PAUSE_MS = 250


class BrokerMadeTopics:
    def __init__(self, manager: InternalTopicManager, plan: TopologyPlan, clock: PatientClock) -> None:
        self._manager = manager
        self._plan = plan
        self._clock = clock
        self._ids: dict[str, str] = {}
        self._asked_at_ms: int | None = None

    def check_start(self, has_run: Callable[[], bool]) -> dict[str, TopicInfo]:
        """The topics that are there, before the group is joined. `has_run`: whether the app has committed offsets."""
        deadline_ms = self._clock.now_ms() + CREATION_PATIENCE_MS
        while True:
            found = self._manager.present(self._plan).topics
            missing = sorted(self._plan.internal_topics.keys() - found.keys())
            if not missing or not found or not has_run():
                self._note(found)
                return found
            if self._clock.now_ms() >= deadline_ms:
                raise InternalTopicLostError(
                    f"internal topics are gone, although the app has run: {', '.join(missing)}",
                    hint="the broker would create them anew, and empty: restore them, or reset the app; if they are new in "
                    "this version, start it once with group.protocol=classic",
                )
            self._clock.pause_ms(CREATION_PAUSE_MS)

    def check(self) -> None:
        """Whether those that are there are still the same."""
        self._note(self._manager.found(self._plan))

    def ids(self) -> Mapping[str, str]:
        """All of them, as they are now."""
        if self._asked_at_ms is None or self._clock.now_ms() - self._asked_at_ms >= FRESH_MS:
            self._note(self._manager.verified(self._plan).topics)
            self._asked_at_ms = self._clock.now_ms()
        return dict(self._ids)

    def _note(self, found: Mapping[str, TopicInfo]) -> None:
        refuse_replaced(self._ids, found)
        self._ids.update({name: info.topic_id for name, info in found.items()})
