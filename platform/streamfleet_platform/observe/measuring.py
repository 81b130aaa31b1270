"""Two looks at an app become the Measures that scaling decides from (scaling/measures.py). Called once per pass and app.

Rates are differences between the looks: what arrived by where inputs end, what was done by the workers' own counters. Where one is
not known (a task was not seen twice, a worker runs another topology, a record was never processed), there are no Measures: a
decision made from a guess would move state for nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

import streamfleet
from streamfleet_platform.observe.looks import Look, TaskLook
from streamfleet_platform.scaling.measures import Measures, SlotMeasures, SubTopologyMeasures, Task, TaskMeasures
from streamfleet_platform.topologies.lock import TopologyLock

SHORTEST_SECONDS = 5.0
"""Looks that are closer together measure noise: the older one is kept."""


@dataclass(frozen=True)
class _Known:
    """What is remembered of an app between two looks."""

    look: Look
    stable_since: datetime | None
    measures: Measures | None = None


class Measuring:
    """Remembers the last look at each app. Used by one thread."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}

    def look(
        self, app: str, look: Look, lock: TopologyLock, application_id: str, acceptable_lag: int
    ) -> Measures | None:
        """None: not yet, or not any more; nothing should be decided."""
        former = self._known.get(app)
        since = former.stable_since if former is not None else None
        stable_since = (since or look.at) if look.is_at_rest else None
        if former is None:
            self._known[app] = _Known(look, stable_since)
            return None
        if (look.at - former.look.at).total_seconds() < SHORTEST_SECONDS:
            self._known[app] = _Known(former.look, stable_since, former.measures)
            return former.measures if stable_since is not None else None
        measures = measured(former.look, look, lock, application_id, acceptable_lag, stable_since)
        self._known[app] = _Known(look, stable_since, measures)
        return measures

    def forget(self, app: str) -> None:
        self._known.pop(app, None)


def measured(
    before: Look,
    after: Look,
    lock: TopologyLock,
    application_id: str,
    acceptable_lag: int = 10_000,
    stable_since: datetime | None = None,
) -> Measures | None:
    """A task that nobody has is noticed by what was seen before: a worker says nothing of partitions it does not read."""
    if after.slots != after.statuses.keys() or any(s["topology_hash"] != lock.hash for s in after.statuses.values()):
        return None
    parts = _Parts(lock, application_id)
    tasks, former = {task.id: task for task in after.tasks()}, {task.id: task for task in before.tasks()}
    sources = _sources([*tasks.values(), *former.values()])
    if not _all_owned(tasks, sources, parts):
        return None
    seconds = (after.at - before.at).total_seconds()
    arrived = _arrived(before, after)
    done = {task_id: _done(task, former.get(task_id)) for task_id, task in tasks.items()}
    held = _state_shares(after, parts)
    found = {task_id: _task(task, done, arrived, parts, held, seconds) for task_id, task in tasks.items()}
    if any(measures is None for measures in found.values()):
        return None
    return Measures(
        taken_at=after.at,
        sub_topologies={
            parts.content_ids[number]: SubTopologyMeasures(
                topics, parts.is_stateful(number), _fed_by(topics, parts, done, arrived)
            )
            for number, topics in sources.items()
        },
        tasks={parts.key(task_id): measures for task_id, measures in found.items() if measures is not None},
        placement={
            slot: frozenset(parts.key(task.id) for task in tasks.values() if task.slot == slot) for slot in after.slots
        },
        copies={
            parts.key(task_id): slots - {tasks[task_id].slot}
            for task_id, slots in after.caught_up_copies(acceptable_lag).items()
            if task_id in tasks
        },
        slots={slot: shares for slot in after.slots if (shares := _slot(before, after, slot, seconds)) is not None},
        stable_since=stable_since,
    )


class _Parts:
    """The app's sub-topologies, by the numbers that workers use."""

    def __init__(self, lock: TopologyLock, application_id: str) -> None:
        self._lock = lock
        self._application_id = application_id
        self._by_number = {int(part["id"]): part for part in lock.sub_topologies}
        self.content_ids = {number: str(part["content_id"]) for number, part in self._by_number.items()}
        self.repartitions = {
            f"{application_id}-{name}" for name, topic in lock.internal_topics.items() if topic["kind"] == "repartition"
        }

    def key(self, task_id: streamfleet.TaskId) -> Task:
        return Task(self.content_ids[task_id.sub_topology], task_id.partition)

    def is_stateful(self, number: int) -> bool:
        return bool(self._by_number[number]["stores"])

    def writers(self, topic: str) -> list[int]:
        """Numbers of the sub-topologies that write this repartition topic."""
        name = topic.removeprefix(f"{self._application_id}-")
        return [
            number
            for number, part in self._by_number.items()
            if any(node["kind"] == "sink" and node.get("topic") == name for node in part["nodes"])
        ]


def _sources(tasks: Iterable[TaskLook]) -> dict[int, dict[str, int]]:
    """Partitions of each topic that a sub-topology reads, by its number."""
    found: dict[int, dict[str, int]] = {}
    for task in tasks:
        topics = found.setdefault(task.id.sub_topology, {})
        for topic, partition in task.ends:
            topics[topic] = max(topics.get(topic, 0), partition + 1)
    return found


def _all_owned(
    tasks: Mapping[streamfleet.TaskId, TaskLook], sources: Mapping[int, Mapping[str, int]], parts: _Parts
) -> bool:
    expected = {
        streamfleet.TaskId(number, partition)
        for number, topics in sources.items()
        for partition in range(max(topics.values(), default=0))
    }
    return sources.keys() == parts.content_ids.keys() and expected == tasks.keys()


def _arrived(before: Look, after: Look) -> dict[tuple[str, int], int]:
    ends = before.ends()
    return {place: max(0, end - ends[place]) for place, end in after.ends().items() if place in ends}


def _done(task: TaskLook, former: TaskLook | None) -> tuple[int, float]:
    """Records and busy seconds between the looks; since its process began if it was elsewhere before."""
    if former is None or (former.slot, former.process) != (task.slot, task.process):
        return task.processed_records, task.busy_seconds
    return task.processed_records - former.processed_records, task.busy_seconds - former.busy_seconds


def _task(
    task: TaskLook,
    done: Mapping[streamfleet.TaskId, tuple[int, float]],
    arrived: Mapping[tuple[str, int], int],
    parts: _Parts,
    state_shares: Mapping[int, int],
    seconds: float,
) -> TaskMeasures | None:
    if task.lag_records is None or any(place not in arrived for place in task.ends):
        return None
    relayed = sum(arrived[place] for place in task.ends if place[0] in parts.repartitions)
    fresh = sum(arrived[place] for place in task.ends) - relayed
    cost = _cost(task, done)
    if cost is None and (fresh or relayed or task.lag_records):
        return None
    is_stateful = parts.is_stateful(task.id.sub_topology)
    return TaskMeasures(
        records_per_second=fresh / seconds,
        busy_seconds_per_record=cost or 0.0,
        lag_records=task.lag_records,
        relayed_per_second=relayed / seconds,
        state_bytes=state_shares.get(task.slot, 0) if is_stateful else 0,
    )


def _state_shares(look: Look, parts: _Parts) -> dict[int, int]:
    """By slot: what one of its tasks with state has on its disk, if all have the same."""
    counts = Counter(task.slot for task in look.tasks() if parts.is_stateful(task.id.sub_topology))
    return {slot: look.state_bytes.get(slot, 0) // count for slot, count in counts.items()}


def _cost(task: TaskLook, done: Mapping[streamfleet.TaskId, tuple[int, float]]) -> float | None:
    """Busy seconds per record: between the looks, or since its process began, or as its siblings have it."""
    records, busy = done[task.id]
    if records > 0:
        return busy / records
    if task.processed_records > 0:
        return task.busy_seconds / task.processed_records
    siblings = [counts for other, counts in done.items() if other.sub_topology == task.id.sub_topology]
    records, busy = sum(counts[0] for counts in siblings), sum(counts[1] for counts in siblings)
    return busy / records if records else None


def _fed_by(
    topics: Mapping[str, int],
    parts: _Parts,
    done: Mapping[streamfleet.TaskId, tuple[int, float]],
    arrived: Mapping[tuple[str, int], int],
) -> dict[str, float]:
    """Records that each writer of its repartition topics writes per record it reads. Several writers of one topic count alike."""
    found: dict[str, float] = {}
    for topic in topics.keys() & parts.repartitions:
        writers = parts.writers(topic)
        read = sum(counts[0] for task_id, counts in done.items() if task_id.sub_topology in writers)
        written = sum(count for place, count in arrived.items() if place[0] == topic)
        for number in writers:
            content_id = parts.content_ids[number]
            # Nothing read: nothing to relate to, and nothing that a ratio would be applied to.
            found[content_id] = found.get(content_id, 0.0) + (written / read if read else 1.0)
    return found


def _slot(before: Look, after: Look, slot: int, seconds: float) -> SlotMeasures | None:
    """None: its worker was not seen twice."""
    former = before.statuses.get(slot)
    if former is None or former["started_at_ms"] != after.statuses[slot]["started_at_ms"]:
        return None
    then, now = before.activity_seconds(slot), after.activity_seconds(slot)
    threads = max(1, len(after.statuses[slot]["threads"]))
    share = {name: min(1.0, max(0.0, spent - then.get(name, 0.0)) / seconds / threads) for name, spent in now.items()}
    has_lag = any(task.slot == slot and task.lag_records for task in after.tasks())
    return SlotMeasures(
        busy_share=min(1.0, share.get("process", 0.0) + share.get("punctuate", 0.0)),
        broker_share=share.get("poll", 0.0) if has_lag else 0.0,
        produce_share=share.get("commit", 0.0),
    )
