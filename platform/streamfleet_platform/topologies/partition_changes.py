"""What another number of partitions of an input means. Called by lock_diff.py.

A key's partition is its hash modulo their number: with another number nearly every key belongs to another task, and its state is
in the wrong one. Counts are followed through repartition topics, which are as wide as their widest input unless asked otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from streamfleet_platform.topologies.lock import TopologyLock
from streamfleet_platform.topologies.verdicts import Change, Verdict

INPUT_RESIZED = "input partitions changed"


def partition_changes(
    old: TopologyLock, new: TopologyLock, before: Mapping[str, int], after: Mapping[str, int]
) -> Iterator[Change]:
    for topic in sorted(before.keys() & after.keys() & old.sources() & new.sources()):
        if before[topic] != after[topic]:
            yield _input_resized(topic, before[topic], after[topic], _resized_stores(old, new, before, after, topic))


def _input_resized(topic: str, before: int, after: int, stores: list[str]) -> Change:
    counts = f"it had {before} partitions, has {after}"
    if not stores:
        return Change(
            INPUT_RESIZED,
            topic,
            Verdict.ROLLING,
            f"{counts}; no store depends on them: tasks are added or removed",
        )
    return Change(
        INPUT_RESIZED,
        topic,
        Verdict.INCOMPATIBLE,
        f"{counts}: keys of {', '.join(stores)} belong to other tasks now; reset the app, or raise its generation",
        lost_state=tuple(stores),
    )


def _resized_stores(
    old: TopologyLock, new: TopologyLock, before: Mapping[str, int], after: Mapping[str, int], topic: str
) -> list[str]:
    """Stores that both versions have, in sub-topologies that get another number of tasks by this topic alone."""
    only_this = {**before, topic: after[topic]}
    widths = [_tasks(old, before), _tasks(old, only_this)]
    changed = {
        part["content_id"]
        for part in old.sub_topologies
        if len({width.get(part["content_id"]) for width in widths}) > 1
    }
    stores = {store for part in old.sub_topologies if part["content_id"] in changed for store in part["stores"]}
    # A narrow topic beside a wider one changes no number of tasks, but its own keys still move.
    stores |= {store for part in old.sub_topologies if topic in _topics(part) for store in part["stores"]}
    return sorted(stores & new.stores.keys())


def topic_widths(lock: TopologyLock, counts: Mapping[str, int]) -> dict[str, int]:
    """How many partitions each internal topic needs, by the lock's name of it, where inputs have `counts`."""
    known = _repartition_widths(lock, counts)
    for group in lock.content["copartitioned"]:
        topics = {topic for name in group for topic in lock.nodes[name].get("topics", ())}
        outer = {known[topic] for topic in topics - lock.internal_topics.keys() if topic in known}
        decisive = max(outer or {known[topic] for topic in topics if topic in known}, default=0)
        known |= dict.fromkeys(topics & lock.internal_topics.keys(), decisive)
    widths = {name: known[name] for name in lock.internal_topics if name in known}
    for part in lock.sub_topologies:
        tasks = max((known.get(topic, 0) for topic in _topics(part)), default=0)
        changelogs = (lock.stores[store]["changelog"] for store in part["stores"])
        widths |= {name: tasks for name in changelogs if name in lock.internal_topics}
    return widths


def counts_made_for(lock: TopologyLock, widths: Mapping[str, int], counts: Mapping[str, int]) -> dict[str, int]:
    """How many partitions inputs had when the internal topics were made with `widths`; `counts` are those they have now.

    An internal topic that would be made otherwise now tells that an input was resized: one beside it that is as wide as the topic
    would be. A narrow input beside a wider one leaves no trace.
    """
    expected, before = topic_widths(lock, counts), dict(counts)
    for name in expected.keys() & widths.keys():
        if expected[name] != widths[name]:
            beside = {topic for part in lock.sub_topologies if _touches(lock, part, name) for topic in _topics(part)}
            before |= {topic: widths[name] for topic in beside if counts.get(topic) == expected[name]}
    return before


def _touches(lock: TopologyLock, part: Mapping[str, Any], internal: str) -> bool:
    """Whether it reads, writes, or logs to that topic."""
    logs = {lock.stores[store]["changelog"] for store in part["stores"]}
    return internal in logs | _topics(part) | {node.get("topic") for node in part["nodes"] if node["kind"] == "sink"}


def _tasks(lock: TopologyLock, counts: Mapping[str, int]) -> dict[str, int]:
    """The number of tasks of each sub-topology, by content id."""
    known = _repartition_widths(lock, counts)
    return {
        part["content_id"]: max((known.get(topic, 0) for topic in _topics(part)), default=0)
        for part in lock.sub_topologies
    }


def _repartition_widths(lock: TopologyLock, counts: Mapping[str, int]) -> dict[str, int]:
    """Partitions of inputs and repartition topics; the latter are filled in round by round."""
    known = {name: count for name, count in counts.items() if name not in lock.internal_topics}
    for name, topic in lock.internal_topics.items():
        if topic["partitions"]["rule"] == "asked":
            known[name] = topic["partitions"]["count"]
    for _ in lock.internal_topics:
        for part in lock.sub_topologies:
            width = max((known[topic] for topic in _topics(part) if topic in known), default=None)
            for node in part["nodes"] if width is not None else ():
                target = lock.internal_topics.get(node.get("topic", ""))
                if node["kind"] == "sink" and target is not None and target["partitions"]["rule"] == "widest_upstream":
                    known[node["topic"]] = max(known.get(node["topic"], 0), width or 0)
    return known


def _topics(part: Mapping[str, Any]) -> set[str]:
    return {topic for node in part["nodes"] if node["kind"] == "source" for topic in node["topics"]}
