"""Records at a steady rate, written in the background, and how often each key was: what an app must have counted."""

import threading
import time
from collections import Counter
from types import TracebackType
from typing import Self

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

STEP_SECONDS = 0.02


class Load:
    """Writes until it is closed. `rate` may be changed at any time."""

    def __init__(self, bootstrap_servers: str, topic: str, rate: float, keys: int = 200) -> None:
        self.rate = rate
        self.written: Counter[str] = Counter()
        self._topic = topic
        self._keys = [f"k{number}" for number in range(keys)]
        # Java's partitioner, as the engine's own
        self._producer = Producer({"bootstrap.servers": bootstrap_servers, "partitioner": "murmur2_random"})
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"load of {topic}")
        self._thread.start()

    def _run(self) -> None:
        due, last, number = 0.0, time.monotonic(), 0
        while not self._over.wait(STEP_SECONDS):
            now = time.monotonic()
            due, last = due + self.rate * (now - last), now
            while due >= 1:
                due, number, key = due - 1, number + 1, self._keys[number % len(self._keys)]
                self._producer.produce(self._topic, "x", key)
                self.written[key] += 1
            self._producer.poll(0)

    def close(self) -> None:
        self._over.set()
        self._thread.join()
        assert self._producer.flush(30) == 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def updates(bootstrap_servers: str, topic: str) -> dict[str, list[int]]:
    """Every count that was committed to a topic, by key, in order."""
    settings = {
        "bootstrap.servers": bootstrap_servers,
        "group.id": "lab-reader",
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
    }
    consumer = Consumer(settings)
    try:
        partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in partitions])
        found: dict[str, list[int]] = {}
        at_end: set[int] = set()
        deadline = time.monotonic() + 60
        while len(at_end) < len(partitions):
            assert time.monotonic() < deadline, f"{topic} was not read to its end within a minute"
            for message in consumer.consume(1000, timeout=0.5):
                if message.error() is not None:
                    at_end.add(message.partition())
                    continue
                key, value = message.key(), message.value()
                assert isinstance(key, bytes)
                assert isinstance(value, bytes)
                found.setdefault(key.decode(), []).append(int.from_bytes(value, "big"))
        return found
    finally:
        consumer.close()


def latest(bootstrap_servers: str, topic: str) -> dict[str, int]:
    """Of each key, the last count that was committed."""
    return {key: counts[-1] for key, counts in updates(bootstrap_servers, topic).items()}


def assert_counted_once(bootstrap_servers: str, topic: str) -> None:
    """Counts only grow: no record was counted twice, and none was taken back."""
    for key, counts in updates(bootstrap_servers, topic).items():
        assert counts == sorted(set(counts)), key
