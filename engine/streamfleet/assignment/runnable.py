"""Which tasks are run, and by whom they can be: the members' topologies put together.

Called by group_assignment.py and cluster_facts.py. In a stable group all members have the same topology and everything is run by
anybody. During a rolling upgrade they differ. Two sub-topologies that read the same topic must not run at the same time, each would
see half of nothing; the one that more members have is run, the other waits until it has the majority.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from streamfleet.assignment.snapshot import Member, SubTopologyInfo, TaskKey

Variant = tuple[str, frozenset[str]]
"""Content id and source topics. The same stores may be fed from other topics after an upgrade: that is not the same."""


@dataclass(frozen=True)
class Runnable:
    """A sub-topology that is run, and the members that can."""

    info: SubTopologyInfo
    eligible: frozenset[str]


def current_owners(members: Sequence[Member]) -> dict[TaskKey, str]:
    """Who runs each task now. If two say so, the one that holds the newer plan is right."""
    owners: dict[TaskKey, str] = {}
    for member in sorted(members, key=lambda member: member.generation_id):
        for task in member.report.owned:
            owners[task] = member.member_id
    return owners


def runnable_sub_topologies(members: Sequence[Member]) -> tuple[dict[str, Runnable], tuple[TaskKey, ...]]:
    """What is run, by content id; and the tasks that are not."""
    variants = _variants(members)
    running = _running(members)
    chosen: dict[str, Runnable] = {}
    left_out: set[TaskKey] = set()
    taken: set[str] = set()
    by_support = sorted(variants, key=lambda v: (-len(variants[v].eligible), -running[v], v[0], sorted(v[1])))
    for content_id, topics in by_support:
        candidate = variants[content_id, topics]
        if content_id in chosen or taken & topics:
            left_out |= set(candidate.info.tasks())
            continue
        chosen[content_id] = candidate
        taken |= topics
    run = {task for runnable in chosen.values() for task in runnable.info.tasks()}
    return chosen, tuple(sorted(left_out - run))


def _running(members: Sequence[Member]) -> Counter[Variant]:
    """How many tasks of each variant members have, or were promised and wait for: what runs is left to run where nothing else
    decides, or two variants with equal support would take turns.
    """
    running: Counter[Variant] = Counter()
    for member in members:
        variants = {info.content_id: frozenset(info.sources) for info in member.report.sub_topologies}
        for task in member.report.owned | member.promised:
            if task.content_id in variants:
                running[task.content_id, variants[task.content_id]] += 1
    return running


def _variants(members: Sequence[Member]) -> dict[Variant, Runnable]:
    found: dict[Variant, Runnable] = {}
    for member in members:
        for info in member.report.sub_topologies:
            variant = (info.content_id, frozenset(info.sources))
            known = found.get(variant)
            if known is None:
                found[variant] = Runnable(info, frozenset({member.member_id}))
            else:
                found[variant] = Runnable(_widest(known.info, info), known.eligible | {member.member_id})
    return found


def _widest(one: SubTopologyInfo, other: SubTopologyInfo) -> SubTopologyInfo:
    """Members may have looked before or after a topic got more partitions."""
    sources = {topic: max(count, other.sources[topic]) for topic, count in one.sources.items()}
    changelogs = tuple(sorted({*one.changelogs, *other.changelogs}))
    return SubTopologyInfo(one.content_id, sources, one.stateful or other.stateful, changelogs)
