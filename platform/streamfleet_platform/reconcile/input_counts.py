"""Which inputs have another number of partitions than the state of their apps was made for. Asked by planner.py, at every plan.

Nobody writes input counts down: an app's internal topics were made as wide as its inputs wanted them, and are recorded with their
partitions. Clusters are those that the apps' state is on, as they were accepted; never those that the definitions under plan name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from streamfleet_platform.errors import FleetError
from streamfleet_platform.model.fleet_definition import Cluster as ClusterDefinition
from streamfleet_platform.operations.cluster import Cluster
from streamfleet_platform.operations.topics import external_topics, real_names
from streamfleet_platform.operations.work import AppRevision, Revisions
from streamfleet_platform.registry import apps
from streamfleet_platform.registry.database import Database
from streamfleet_platform.registry.tables import App, InternalTopic
from streamfleet_platform.topologies.partition_changes import counts_made_for


@dataclass(frozen=True)
class Resized:
    """Partition counts of an app's inputs by topic: as its state was made for, and as they are."""

    before: Mapping[str, int]
    after: Mapping[str, int]


@dataclass(frozen=True)
class InputCounts:
    """What was found."""

    resized: Mapping[str, Resized] = field(default_factory=dict)
    """By app; only where they differ."""
    unknown: tuple[str, ...] = ()
    """Which clusters could not be asked, and why."""


class CountingInputs:
    def __init__(
        self, database: Database, revisions: Revisions, cluster_of: Callable[[ClusterDefinition], Cluster]
    ) -> None:
        self._database = database
        self._revisions = revisions
        self._cluster_of = cluster_of

    def look(self, rows: Sequence[App]) -> InputCounts:
        """One question to each cluster, for all apps on it."""
        with self._database.read() as session:
            recorded = apps.all_topics(session)
        known = [row for row in rows if row.name in recorded]
        revisions = self._revisions.load([(row.name, row.revision) for row in known])
        on: dict[str, list[App]] = {}
        for row in known:
            on.setdefault(revisions[row.name, row.revision].cluster.model_dump_json(), []).append(row)
        resized: dict[str, Resized] = {}
        unknown: list[str] = []
        for there in on.values():
            mine = {row.name: revisions[row.name, row.revision] for row in there}
            try:
                present = self._present(mine)
            except FleetError as error:
                unknown.append(f"whether inputs on cluster {there[0].cluster} were resized is not known: {error}")
                continue
            for row in there:
                found = _resized(row, mine[row.name], recorded[row.name], present)
                if found is not None:
                    resized[row.name] = found
        return InputCounts(resized, tuple(unknown))

    def _present(self, revisions: Mapping[str, AppRevision]) -> dict[str, int]:
        topics = {topic for revision in revisions.values() for topic in external_topics(revision)}
        cluster = self._cluster_of(next(iter(revisions.values())).cluster)
        return {name: facts.partitions for name, facts in cluster.topics(topics).items()}


def _resized(
    row: App, revision: AppRevision, recorded: Sequence[InternalTopic], present: Mapping[str, int]
) -> Resized | None:
    inputs = external_topics(revision)
    if not present.keys() >= set(inputs):  # one is missing: that is told where it matters
        return None
    named = {real: name for name, real in real_names(revision, row.epochs).items()}
    widths = {named[topic.name]: topic.partitions for topic in recorded if topic.name in named}
    after = {name: present[name] for name in inputs}
    before = counts_made_for(revision.lock, widths, after)
    return None if before == after else Resized(before, after)
