"""What the engine counts. Written by tasks and StreamThreads, read by the test driver, by the worker's status and by
exporters.

Counters are plain integers that one thread writes, once per batch where records are many; reading them from another
thread is safe. `samples()` gives every number as (name, labels, value), the shape Prometheus wants; nothing here knows
an exporter. What each name means to people is in the worker's metric catalogue.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Literal, NamedTuple

from streamfleet.ids import TaskId

Activity = Literal["restore", "poll", "process", "punctuate"]
"""What a StreamThread spends its time on; commits have a histogram of their own."""

QUERY_BOUNDS_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
LATENCY_BOUNDS_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Sample(NamedTuple):
    """One number, as exporters want it."""

    name: str
    labels: Mapping[str, str]
    value: float


class Dropped(NamedTuple):
    """Why records are missing from the results: who left them out, and the reason."""

    operator: str
    reason: str


class Stall(NamedTuple):
    """Why a partition could not be read on: the topic, and Kafka's name for the cause or a word of ours."""

    topic: str
    cause: str


class LatencyHistogram:
    """How often something took how long. The last bucket has no upper bound."""

    def __init__(self, bounds_seconds: tuple[float, ...] = LATENCY_BOUNDS_SECONDS) -> None:
        self.bounds_seconds = bounds_seconds
        self.counts = [0] * (len(bounds_seconds) + 1)
        self.sum_seconds = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect_left(self.bounds_seconds, seconds)] += 1
        self.sum_seconds += seconds

    @property
    def count(self) -> int:
        return sum(self.counts)


class TaskCounts(NamedTuple):
    """What one task has done in this process."""

    processed_records: int = 0
    busy_seconds: float = 0.0
    """Spent with its records."""


class ThreadCounts:
    """The numbers of one StreamThread, which alone writes them."""

    def __init__(self) -> None:
        self.processed_records: dict[int, int] = {}
        """By number of the SubTopology."""
        self.tasks: dict[TaskId, TaskCounts] = {}
        self.polls = 0
        self.polled_records = 0
        self.restored_records = 0
        self.rebalances = 0
        self.lost_assignments = 0
        self.lost_transactions = 0
        self.corrupted_tasks = 0
        self.lost_rows = 0
        self.full_disk_waits = 0
        self.moved_timestamps = 0
        self.commit_failures = 0
        self.commit_latency = LatencyHistogram()
        self.activity_seconds: dict[Activity, float] = {}

    def add_processed(self, task_id: TaskId, records: int, seconds: float = 0.0) -> None:
        part, before = task_id.sub_topology, self.tasks.get(task_id, TaskCounts())
        self.processed_records[part] = self.processed_records.get(part, 0) + records
        self.tasks[task_id] = TaskCounts(before.processed_records + records, before.busy_seconds + seconds)

    def timed_turn(self, task_id: TaskId, turn: Callable[[], int]) -> int:
        """How many records a task has processed in a turn. They are counted, with the time that they took, if there were any."""
        started = time.perf_counter()
        records = turn()
        if records:
            self.add_processed(task_id, records, time.perf_counter() - started)
        return records

    def add_moved_timestamp(self) -> None:
        self.moved_timestamps += 1

    @contextmanager
    def timed(self, activity: Activity) -> Iterator[None]:
        """Add the time that the block takes, however it ends."""
        started = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - started
            self.activity_seconds[activity] = self.activity_seconds.get(activity, 0.0) + spent

    @contextmanager
    def timed_commit(self) -> Iterator[None]:
        """Observe a commit that succeeds, count one that does not."""
        started = time.perf_counter()
        try:
            yield
        except BaseException:
            self.commit_failures += 1
            raise
        self.commit_latency.observe(time.perf_counter() - started)

    def samples(self, thread: str) -> Iterator[Sample]:
        labels = {"thread": thread}
        for sub_topology, count in list(self.processed_records.items()):
            yield Sample("processed_records_total", labels | {"sub_topology": str(sub_topology)}, count)
        for activity, seconds in list(self.activity_seconds.items()):
            yield Sample("activity_seconds_total", labels | {"activity": activity}, seconds)
        yield Sample("polls_total", labels, self.polls)
        yield Sample("polled_records_total", labels, self.polled_records)
        yield Sample("restored_records_total", labels, self.restored_records)
        yield Sample("rebalances_total", labels, self.rebalances)
        yield Sample("lost_assignments_total", labels, self.lost_assignments)
        yield Sample("lost_transactions_total", labels, self.lost_transactions)
        yield Sample("corrupted_tasks_total", labels, self.corrupted_tasks)
        yield Sample("lost_rows_total", labels, self.lost_rows)
        yield Sample("full_disk_waits_total", labels, self.full_disk_waits)
        yield Sample("moved_timestamps_total", labels, self.moved_timestamps)
        yield Sample("commit_failures_total", labels, self.commit_failures)


class QueryCounts:
    """Queries that a worker was asked over HTTP. Written by all threads of its door."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: dict[tuple[str, int], int] = {}
        self._latencies: dict[str, LatencyHistogram] = {}

    def add(self, kind: str, status: int, seconds: float) -> None:
        with self._lock:
            self._answers[kind, status] = self._answers.get((kind, status), 0) + 1
            self._latencies.setdefault(kind, LatencyHistogram(QUERY_BOUNDS_SECONDS)).observe(seconds)

    @property
    def latencies(self) -> Mapping[str, LatencyHistogram]:
        """By kind."""
        with self._lock:
            return dict(self._latencies)

    def samples(self) -> Iterator[Sample]:
        with self._lock:
            answers = list(self._answers.items())
        for (kind, status), count in answers:
            yield Sample("queries_total", {"kind": kind, "status": str(status)}, count)


class OutageCounts:
    """How often the brokers did not answer, and for how long by now."""

    def __init__(self) -> None:
        self.outages = 0
        self._began_seconds: float | None = None

    def begin(self, waited_seconds: float = 0.0) -> None:
        self.outages += 1
        self._began_seconds = time.monotonic() - waited_seconds

    def end(self) -> None:
        self._began_seconds = None

    @property
    def away_seconds(self) -> float:
        """0.0 if they answer."""
        began_seconds = self._began_seconds
        return 0.0 if began_seconds is None else time.monotonic() - began_seconds

    def samples(self) -> Iterator[Sample]:
        yield Sample("broker_outages_total", {}, self.outages)
        yield Sample("broker_away_seconds", {}, self.away_seconds)


class Metrics:
    """The numbers of one app in this process: of its tasks together, and of each of its StreamThreads."""

    def __init__(self) -> None:
        self.broker = OutageCounts()
        self._dropped: dict[Dropped, int] = {}
        self._stalls: dict[Stall, int] = {}
        self._empty_changelogs: dict[str, int] = {}
        self._failures: dict[str, int] = {}
        self._threads: dict[str, ThreadCounts] = {}
        self.queries = QueryCounts()

    def record_dropped(self, operator: str, reason: str, count: int = 1) -> None:
        key = Dropped(operator, reason)
        self._dropped[key] = self._dropped.get(key, 0) + count

    def record_read_stall(self, topic: str, cause: str) -> None:
        key = Stall(topic, cause)
        self._stalls[key] = self._stalls.get(key, 0) + 1

    def record_empty_changelog(self, topic: str) -> None:
        self._empty_changelogs[topic] = self._empty_changelogs.get(topic, 0) + 1

    @property
    def empty_changelogs(self) -> Mapping[str, int]:
        """Changelogs that were missing although the app has run, by topic."""
        return MappingProxyType(self._empty_changelogs)

    def record_failure(self, error: BaseException) -> None:
        """The app could not start, or a StreamThread has ended, for this reason."""
        kind = type(error).__name__
        self._failures[kind] = self._failures.get(kind, 0) + 1

    @property
    def failures(self) -> Mapping[str, int]:
        """How often the app could not start, or a StreamThread ended by itself, by the name of the error."""
        return MappingProxyType(self._failures)

    @property
    def read_stalls(self) -> Mapping[Stall, int]:
        """How often a partition of a topic could not be read on, by cause."""
        return MappingProxyType(self._stalls)

    @property
    def dropped_records(self) -> Mapping[Dropped, int]:
        """Number of dropped records by operator (or store) and reason."""
        return MappingProxyType(self._dropped)

    @property
    def dropped_records_total(self) -> int:
        return sum(self._dropped.values())

    def thread(self, name: str) -> ThreadCounts:
        """The counters of a StreamThread; one that replaces another of the same name counts on."""
        return self._threads.setdefault(name, ThreadCounts())

    @property
    def threads(self) -> Mapping[str, ThreadCounts]:
        return dict(self._threads)

    def samples(self) -> Iterator[Sample]:
        """Every counter; the histograms of commits are in `threads`."""
        yield from self.broker.samples()
        for (operator, reason), count in list(self._dropped.items()):
            yield Sample("dropped_records_total", {"operator": operator, "reason": reason}, count)
        for (topic, cause), count in list(self._stalls.items()):
            yield Sample("read_stalls_total", {"topic": topic, "cause": cause}, count)
        yield from self.queries.samples()
        for topic, count in list(self._empty_changelogs.items()):
            yield Sample("empty_changelogs_total", {"topic": topic}, count)
        for kind, count in list(self._failures.items()):
            yield Sample("failures_total", {"kind": kind}, count)
        for name, counts in self.threads.items():
            yield from counts.samples(name)
