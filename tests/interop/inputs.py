"""The records that the apps of topologies.py are given, in three phases: between two of them the app changes hands.

Seeded, so that every run of a topology can be given the same. A record's partition is chosen such that what is re-keyed stays in
its partition: a repartition topic then has one writer per partition, and the order of all results is known. Not so where tables
are joined by a foreign key: `orders` point to `users` of any partition. Some records are late, some so late that they must be
dropped, some have no value, some have headers.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tests.interop.topologies import INPUTS

from streamfleet.partitioner import partition_for

PARTITIONS = 3
PHASES = 3
RECORDS = 150
"""Of one phase and topic."""
KEYS = 8
STEP_MS = 1000
LATE_STEPS = 30
NAMES_NO_USER = (b"nobody", None)
WITHOUT_KEY, LATE, WITH_HEADERS = 0.02, 0.2, 0.3

Headers = tuple[tuple[str, bytes], ...]


@dataclass(frozen=True)
class Input:
    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Headers = ()


def recent() -> int:
    """A time to begin at, an hour ago: the broker deletes what is older than the retention of a topic."""
    return int(time.time() - 3600) // 10 * 10_000


def phases(topology: str, base_ms: int, *, late_first: bool = False, seed: int = 1) -> list[list[Input]]:
    """What each phase brings, in the order of writing.

    An operator's own time begins anew with every owner of a task, in Java too. So a phase begins with a record that is not late,
    in every partition, and an app that was never stopped gives the same results; unless `late_first` asks for the opposite.
    """
    source = _Source(topology, random.Random(f"{topology}-{seed}"), [base_ms] * PARTITIONS)
    return [source.phase(number, late_first=late_first and number > 0) for number in range(PHASES)]


def waves(topology: str, records: Sequence[Input]) -> list[list[Input]]:
    """What has to be processed before the next is written. One wave, but where rows are joined by a foreign key: users, orders that
    name one, and then for each order that ends without a user the record that says so.

    A row of the inner join is not told of its end if it is written anew before the answer to that has come back, and the new one
    finds no user: the answer is then about another row, and there is none to the new one. That follows from the messages, which
    are Java's: how a row ends is only certain where nothing else is under way.
    """
    if topology != "foreign":
        return [list(records)]
    orders = [record for record in records if record.topic == "orders"]
    last = {record.key: record for record in orders}
    ends = [record for record in last.values() if record.value in NAMES_NO_USER]
    named = [record for record in orders if record.value not in NAMES_NO_USER]
    return [[record for record in records if record.topic == "users"], named, ends]


@dataclass
class _Source:
    """`clocks` by partition. No two records of a partition have the same time, whatever their topic: a task with two inputs
    takes the earlier one first, and what it does with equals is its own affair.
    """

    topology: str
    rng: random.Random
    clocks: list[int]
    late: int = field(default=0)

    def phase(self, number: int, *, late_first: bool) -> list[Input]:
        topics = INPUTS[self.topology]
        first = self._late_ones if late_first else self._one_on_time
        records = [record for topic in topics for p in range(PARTITIONS) for record in first(topic, p, number)]
        for _ in range(RECORDS):
            records += [self._record(topic) for topic in topics]
        return records

    def _one_on_time(self, topic: str, partition: int, number: int) -> Iterator[Input]:
        """The first one after a takeover takes its time from the partition's, where the topology lets it."""
        asks = self.topology == "windows" and number > 0
        value = b"user0" if topic == "orders" else b"now" if asks else b"first"
        yield Input(topic, partition, self._key_in(topic, partition), value, self._tick(partition))

    def _late_ones(self, topic: str, partition: int, number: int) -> Iterator[Input]:
        """Late by less than windows are kept, and by more."""
        for steps in (12, 40, 100):
            yield Input(topic, partition, self._key_in(topic, partition), b"late", self._late_time(partition, steps))

    def _record(self, topic: str) -> Input:
        rng = self.rng
        key = self._key(topic)
        partition = _partition(key)
        timestamp = self._tick(partition)
        if rng.random() < LATE:
            timestamp = self._late_time(partition, rng.randint(1, LATE_STEPS))
        if rng.random() < WITHOUT_KEY and self.topology in ("windows", "final"):
            return Input(topic, partition, None, b"without key", timestamp)
        headers: Headers = (("trace", b"%d" % rng.randrange(100)),) if rng.random() < WITH_HEADERS else ()
        return Input(topic, partition, key, rng.choice(self._values(topic)), timestamp, headers)

    def _values(self, topic: str) -> list[bytes | None]:
        if topic == "orders":
            return [*(b"user%d" % number for number in range(KEYS)), *NAMES_NO_USER]
        return [b"a", b"b", b"c", b"now", None]

    def _tick(self, partition: int) -> int:
        self.clocks[partition] += STEP_MS
        return self.clocks[partition]

    def _late_time(self, partition: int, steps: int) -> int:
        self.late += 1
        assert self.late < STEP_MS, "late records would get the times of others"
        return self.clocks[partition] - steps * STEP_MS - self.late

    def _key_in(self, topic: str, partition: int) -> bytes:
        while _partition(key := self._key(topic)) != partition:
            pass
        return key

    def _key(self, topic: str) -> bytes:
        number = self.rng.randrange(KEYS)
        re_keyed = topic == "in" and self.topology in ("sessions", "generated")
        if re_keyed:
            return b"user%d/device%d" % (number, self.rng.randrange(3))
        return (b"user%d" if topic == "users" else b"key%d") % number


def _partition(key: bytes) -> int:
    """Where the part that a record is re-keyed by belongs."""
    return partition_for(key.partition(b"/")[0], PARTITIONS)
