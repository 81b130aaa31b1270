"""Looks at Kafka clusters in the background: topics, settings, ends, groups of all apps on one at once. Used by door_observer.py.

A cluster that is away answers after many seconds, and a pass must not wait for it: a look is begun when the last one has become
old, and who asks gets the last one that has ended. What it means for one app is read off it by the functions below; they are pure.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime

import structlog

from streamfleet_platform.errors import FleetError
from streamfleet_platform.model.fleet_definition import Cluster as ClusterDefinition
from streamfleet_platform.operations.cluster import Cluster, GroupFacts, TopicFacts
from streamfleet_platform.operations.seen import TopicSeen
from streamfleet_platform.operations.topics import external_topics
from streamfleet_platform.reconcile.observing import AppToSee
from streamfleet_platform.registry.tables import InternalTopic

log = structlog.get_logger(__name__)

EVERY_SECONDS = 5.0
_THREADS = 4


@dataclass(frozen=True)
class ClusterSight:
    """One cluster, as of one look."""

    at: datetime
    problem: str | None = None
    """Why it could not be asked; then everything else is empty."""
    topics: Mapping[str, TopicFacts] = field(default_factory=dict)
    configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    ends: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    groups: Mapping[str, GroupFacts] = field(default_factory=dict)
    asked: frozenset[str] = frozenset()
    """Apps that it was about: one that came later is not seen yet."""


class ClusterWatch:
    """Close it. Used by one thread."""

    def __init__(
        self,
        cluster_of: Callable[[ClusterDefinition], Cluster],
        clock: Callable[[], datetime],
        every_seconds: float = EVERY_SECONDS,
    ) -> None:
        self._cluster_of = cluster_of
        self._clock = clock
        self._every_seconds = every_seconds
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="clusters")
        self._lock = threading.Lock()
        self._sights: dict[str, ClusterSight] = {}
        self._looks: dict[str, Future[None]] = {}

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def sights(self, apps: Sequence[AppToSee]) -> dict[str, ClusterSight]:
        """By app, of those whose cluster has been looked at."""
        by_cluster: dict[str, list[AppToSee]] = {}
        for app in apps:
            by_cluster.setdefault(app.revision.cluster.model_dump_json(), []).append(app)
        for key, members in by_cluster.items():
            self._begin(key, members)
        with self._lock:
            return {
                app.app.name: sight
                for key, members in by_cluster.items()
                if (sight := self._sights.get(key)) is not None
                for app in members
                if sight.problem is not None or app.app.name in sight.asked
            }

    def _begin(self, key: str, apps: Sequence[AppToSee]) -> None:
        under_way, last = self._looks.get(key), self._sights.get(key)
        names = frozenset(app.app.name for app in apps)
        is_recent = last is not None and (self._clock() - last.at).total_seconds() < self._every_seconds
        if (under_way is not None and not under_way.done()) or (is_recent and last is not None and names <= last.asked):
            return
        self._looks[key] = self._pool.submit(self._look, key, list(apps), names)

    def _look(self, key: str, apps: Sequence[AppToSee], names: frozenset[str]) -> None:
        at = self._clock()
        try:
            cluster = self._cluster_of(apps[0].revision.cluster)
            sight = _looked(cluster, apps, at, names)
        except FleetError as error:
            sight = ClusterSight(at, problem=str(error), asked=names)
        except Exception as error:
            log.exception("a cluster could not be looked at")
            sight = ClusterSight(at, problem=f"{type(error).__name__}: {error}", asked=names)
        with self._lock:
            self._sights[key] = sight


def _looked(cluster: Cluster, apps: Sequence[AppToSee], at: datetime, names: frozenset[str]) -> ClusterSight:
    internal = {row.name for app in apps for row in app.topics}
    others = {topic for app in apps for topic in _others(app)}
    topics = cluster.topics(internal | others)
    return ClusterSight(
        at,
        topics=topics,
        configs=cluster.configs(internal & topics.keys()),
        ends=cluster.end_offsets(topics),
        groups=cluster.groups({app.app.application_id for app in apps}),
        asked=names,
    )


def _others(app: AppToSee) -> Iterator[str]:
    """Topics of the app that are not its own."""
    yield from external_topics(app.revision)
    yield from (output.topic for output in app.revision.spec.outputs.values())
    if app.revision.spec.errors.dead_letter_topic is not None:
        yield app.revision.spec.errors.dead_letter_topic


def missing_inputs(app: AppToSee, sight: ClusterSight) -> tuple[str, ...]:
    if sight.problem is not None:
        return ()
    return tuple(topic for topic in external_topics(app.revision) if topic not in sight.topics)


def topics_seen(app: AppToSee, sight: ClusterSight) -> dict[str, TopicSeen]:
    recorded = {row.name: row for row in app.topics}
    found = {}
    for name in {*recorded, *_others(app)} & sight.topics.keys():
        ends = sight.ends.get(name)
        drift = tuple(_topic_drift(recorded[name], sight)) if name in recorded else ()
        found[name] = TopicSeen(sight.topics[name].partitions, None if ends is None else sum(ends.values()), drift)
    return found


def cluster_drift(app: AppToSee, sight: ClusterSight) -> tuple[str, ...]:
    """Recorded topics that are not as they were recorded, and members of the group that nobody started here."""
    if sight.problem is not None:
        return ()
    told = [words for row in app.topics for words in _topic_drift(row, sight)]
    group = sight.groups.get(app.app.application_id)
    ours = {f"{app.app.application_id}-{worker.slot}" for worker in app.workers}
    strangers = () if group is None else [name for name in group.instances if not _is_of(name, ours)]
    return (*told, *(f"{name} is a member of the group, and no worker of this fleet" for name in strangers))


def _is_of(instance: str, slots: set[str]) -> bool:
    """A worker with several threads has one member per thread, named after its slot."""
    return any(instance == slot or instance.startswith(f"{slot}-") for slot in slots)


def _topic_drift(row: InternalTopic, sight: ClusterSight) -> Iterator[str]:
    if row.topic_id is None:
        return  # being made
    facts = sight.topics.get(row.name)
    if facts is None:
        yield f"topic {row.name} is gone"
        return
    if facts.topic_id != row.topic_id:
        yield f"topic {row.name} is another one than was recorded: it was deleted and made anew"
    if facts.partitions != row.partitions:
        yield f"topic {row.name} has {facts.partitions} partitions, not {row.partitions}"
    configs = sight.configs.get(row.name)
    for name, value in () if configs is None else sorted(row.configs.items()):
        if configs is not None and configs.get(name) != value:
            yield f"topic {row.name} has {name} {configs.get(name)}, not {value}"
