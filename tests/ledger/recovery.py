"""How long readers and tasks wait after a crash: measured on a bench, printed by the tests of tests/e2e.

A worker is killed in the middle of a transaction while a peer runs. Its open transaction hides what follows it from readers of
committed data, until somebody ends it; its tasks stand still, until somebody else has restored them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from confluent_kafka import IsolationLevel
from confluent_kafka import TopicPartition as Partition
from confluent_kafka.admin import AdminClient, OffsetSpec
from tests.ledger.app import output_topic
from tests.ledger.bench import Bench
from tests.ledger.fleet import Worker

PATIENCE_SECONDS = 60.0


@dataclass(frozen=True)
class Takeover:
    readers_free_seconds: float
    """From the kill until no partition has an open transaction that is the dead worker's."""
    tasks_running_seconds: float
    """From the kill until the last of its tasks ran elsewhere."""

    def __str__(self) -> str:
        return (
            f"kill -9 in a transaction: readers free after {self.readers_free_seconds:.2f} s, "
            f"tasks running elsewhere after {self.tasks_running_seconds:.2f} s"
        )


def measure_takeover(bench: Bench, victim: Worker, peer: Worker) -> Takeover:
    """The victim is about to be killed by a failpoint inside a transaction; waits for that and for what follows."""
    if victim.wait_for_end(PATIENCE_SECONDS) is None:
        raise TimeoutError("the victim did not die")
    died = _last(victim, "failpoint acts")
    orphans = running_tasks(victim)
    hidden = [int(task.partition("_")[2]) for task in orphans if task.startswith("0_")]
    free = _wait_for_readers(bench, hidden) - died
    _wait_until_running(peer, orphans, died)
    started = [e["timestamp"] for e in peer.events() if e.get("event") == "task running" and e["timestamp"] > died]
    return Takeover(free, max(started, default=died) - died)


def running_tasks(worker: Worker) -> set[str]:
    """As its log tells."""
    tasks: set[str] = set()
    for event in worker.events():
        if event.get("event") == "task running":
            tasks.add(event["task"])
        elif event.get("event") == "task closed":
            tasks.discard(event["task"])
    return tasks


def restored_records(worker: Worker, since: float) -> int:
    return sum(
        event.get("records", 0)
        for event in worker.events()
        if event.get("event") == "task restored" and event["timestamp"] >= since
    )


def _last(worker: Worker, name: str) -> float:
    return max(float(event["timestamp"]) for event in worker.events() if event.get("event") == name)


def _wait_for_readers(bench: Bench, partitions: list[int]) -> float:
    """When the last stable offset of all these partitions has reached their end."""
    admin = AdminClient({"bootstrap.servers": bench.bootstrap})
    wanted = {Partition(output_topic("echo"), number): OffsetSpec.latest() for number in partitions}
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        stable, ends = (
            {key.partition: future.result(10).offset for key, future in answer.items()}
            for answer in (
                admin.list_offsets(wanted, isolation_level=level)
                for level in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED)
            )
        )
        if stable == ends:
            return time.time()
        time.sleep(0.02)
    raise TimeoutError(f"partitions {partitions} are still hidden from readers")


def _wait_until_running(worker: Worker, tasks: set[str], since: float) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not tasks <= running_tasks(worker):
        if time.monotonic() > deadline:
            raise TimeoutError(f"tasks {tasks - running_tasks(worker)} did not run elsewhere")
        time.sleep(0.05)
