"""Two locks of one app are compared: what changes, what each change means, and what the whole means.

Pure. Stores are compared in store_changes.py, nodes, topics and sub-topologies in graph_changes.py, numbers of partitions in
partition_changes.py; what a verdict means is in verdicts.py.
"""

from __future__ import annotations

from collections.abc import Mapping

from streamfleet_platform.topologies.graph_changes import graph_changes
from streamfleet_platform.topologies.lock import TopologyLock
from streamfleet_platform.topologies.partition_changes import partition_changes
from streamfleet_platform.topologies.store_changes import renamed_stores, store_changes
from streamfleet_platform.topologies.verdicts import LockDiff


def diff_locks(
    old: TopologyLock,
    new: TopologyLock,
    *,
    old_partitions: Mapping[str, int] | None = None,
    new_partitions: Mapping[str, int] | None = None,
) -> LockDiff:
    """Partition counts of input topics, where they are known: a lock does not hold them."""
    renames = renamed_stores(old, new)
    changes = [
        *store_changes(old, new, renames),
        *graph_changes(old, new, renames),
        *partition_changes(old, new, old_partitions or {}, new_partitions or {}),
    ]
    changes.sort(key=lambda change: (-change.verdict, change.what, change.subject))
    return LockDiff(
        changes=tuple(changes),
        topics_created=tuple(sorted(new.internal_topics.keys() - old.internal_topics.keys())),
        topics_orphaned=tuple(sorted(old.internal_topics.keys() - new.internal_topics.keys())),
    )
