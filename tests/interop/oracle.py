"""What an app that was never stopped makes of the input, in the TopologyTestDriver: every partition on its own; or all together,
where results do not stay in the partition of their input, and it is only known how every row ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from tests.interop.app import Result, newest_values
from tests.interop.inputs import PARTITIONS, Input, waves
from tests.interop.topologies import OUTPUTS, STRING, topology

import streamfleet as sf
from streamfleet.testing import TopologyTestDriver

TOPICS = "oracle"


def expected_results(name: str, phases: Sequence[Sequence[Input]]) -> dict[str, list[list[Result]]]:
    by_partition = [_run(name, phases, partition) for partition in range(PARTITIONS)]
    return {topic: [results[topic] for results in by_partition] for topic in OUTPUTS[name]}


def expected_rows(name: str, phases: Sequence[Sequence[Input]]) -> dict[str, dict[bytes | None, bytes]]:
    return {topic: newest_values(results) for topic, results in _run(name, phases, None).items()}


def _run(name: str, phases: Sequence[Sequence[Input]], partition: int | None) -> dict[str, list[Result]]:
    config = sf.StreamsConfig(
        application_id=TOPICS, default_key_serde=STRING, default_value_serde=STRING, statestore_cache_max_bytes=0
    )
    with TopologyTestDriver(topology(name, TOPICS), config) as driver:
        for wave in (wave for phase in phases for wave in waves(name, phase)):
            for record in _in_order(record for record in wave if partition in (None, record.partition)):
                driver.pipe_raw(f"{TOPICS}-{record.topic}", record.key, record.value, record.timestamp, record.headers)
        drained = driver.drain()
    return {
        topic: [Result(r.key, r.value, r.timestamp, r.headers) for r in drained if r.topic == f"{TOPICS}-{topic}"]
        for topic in OUTPUTS[name]
    }


def _in_order(records: Iterable[Input]) -> Iterator[Input]:
    """As a task takes the records of its topics: always the earliest of those that come next."""
    topics: dict[str, deque[Input]] = {}
    for record in records:
        topics.setdefault(record.topic, deque()).append(record)
    while waiting := [queue for queue in topics.values() if queue]:
        yield min(waiting, key=lambda queue: queue[0].timestamp).popleft()
