"""The input topics: waited for at the start, and looked at now and then while the app runs.

Tasks are made for the partitions that were there at the start. A topic that has grown since sends keys to partitions that nobody
reads, and one that was made anew counts its offsets from zero again: neither is told to a consumer, so somebody has to look. Called
by KafkaStreams before a step of one of its threads; what is found ends the app, because no task can put it right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import structlog

from streamfleet.clock import Clock
from streamfleet.kafka.client_errors import MissingSourceTopicError, SourceTopicChangedError
from streamfleet.kafka.internal_topic_manager import InternalTopicManager
from streamfleet.kafka.patience import MonotonicClock, PatientClock
from streamfleet.ports import Admin, TopicInfo
from streamfleet.topology.topology import Topology

log = structlog.get_logger(__name__)

MISSING_CHECK_MS = 250
"""How soon to look again for a topic that is missing."""


def await_source_topics(
    manager: InternalTopicManager,
    topology: Topology,
    application_id: str,
    timeout_ms: int,
    clock: PatientClock | None = None,
) -> dict[str, TopicInfo]:
    """The topics the app reads; one that is not there yet may be created meanwhile, by somebody who starts at the same time."""
    time = clock or MonotonicClock()
    deadline_ms = time.now_ms() + timeout_ms
    told = False
    while True:
        try:
            return manager.source_topics(topology, application_id)
        except MissingSourceTopicError as error:
            if time.now_ms() + MISSING_CHECK_MS > deadline_ms:
                raise
            if not told:
                log.warning("waiting for source topics", missing=list(error.topics), timeout_ms=timeout_ms)
                told = True
            time.pause_ms(MISSING_CHECK_MS)


class SourceWatch:
    """`expected` are the topics as they were when the tasks were planned."""

    def __init__(
        self,
        admin: Admin,
        expected: Mapping[str, TopicInfo],
        clock: Clock,
        *,
        interval_ms: int,
        missing_timeout_ms: int,
        also: Callable[[], None] | None = None,
    ) -> None:
        """`also`: another look to be taken at the same time."""
        self._also = also
        self._admin = admin
        self._expected = expected
        self._clock = clock
        self._interval_ms = interval_ms
        self._missing_timeout_ms = missing_timeout_ms
        self._next_ms = clock.monotonic_ms() + interval_ms
        self._missing_since_ms: int | None = None

    def run_once(self) -> None:
        """Look, if it is time to."""
        now_ms = self._clock.monotonic_ms()
        if now_ms < self._next_ms:
            return
        found = self._admin.describe_topics(self._expected)
        for name, topic in found.items():
            self._compare(self._expected[name], topic)
        missing = sorted(self._expected.keys() - found.keys())
        self._next_ms = now_ms + (min(MISSING_CHECK_MS, self._interval_ms) if missing else self._interval_ms)
        self._on_missing(missing, now_ms)
        if self._also is not None:
            self._also()

    def _on_missing(self, missing: list[str], now_ms: int) -> None:
        if not missing:
            self._missing_since_ms = None
        elif self._missing_since_ms is None:
            self._missing_since_ms = now_ms
            log.warning("source topics are gone", missing=missing, timeout_ms=self._missing_timeout_ms)
        elif now_ms - self._missing_since_ms >= self._missing_timeout_ms:
            raise MissingSourceTopicError(missing)

    def _compare(self, before: TopicInfo, now: TopicInfo) -> None:
        if now.topic_id != before.topic_id:
            raise SourceTopicChangedError(
                f"source topic {before.name} was deleted and created again while the app was running",
                hint="start the app again: it begins at the new topic's beginning, and its state keeps what the old one led to",
            )
        if now.partitions != before.partitions:
            raise SourceTopicChangedError(
                f"source topic {before.name} has {now.partitions} partitions, it had {before.partitions} when the app was started",
                hint="keys have moved to other partitions: an app without state is started again, one with state must be reset",
            )
