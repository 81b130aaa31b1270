"""One application id on a broker, and whoever runs it: topics, input, results, changelogs, committed offsets."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ConfigSource, NewTopic, OffsetSpec, ResourceType
from tests.interop.inputs import PARTITIONS, Headers, Input, waves
from tests.interop.side import Side
from tests.interop.topologies import INPUTS, OUTPUTS

from streamfleet import ids
from streamfleet.kafka.connection import TcpConnector
from streamfleet.kafka.coordinator import CoordinatorLine
from streamfleet.kafka.error_codes import ErrorCode
from streamfleet.kafka.group_admin import KafkaGroupAdmin
from streamfleet.kafka.offset_client import OffsetClient
from streamfleet.kafka.patience import MonotonicClock
from streamfleet.kafka.streams_group.describe import describe
from streamfleet.kafka.streams_group.group_settings import set_group_settings
from streamfleet.task.offsets import CommittedOffset

SECONDS = 90
BETWEEN = ("-repartition", "-subscription-registration-topic", "-subscription-response-topic")
"""Topics between the sub-topologies, by their ends; answers come after the registrations that they follow from."""
CLOCK = MonotonicClock()


class Result(NamedTuple):
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Headers


@dataclass(frozen=True)
class Row:
    """The last record of a key in a changelog."""

    value: bytes
    timestamp: int
    headers: Headers


class App:
    """`name` is the application id and the prefix of the topics."""

    def __init__(
        self, bootstrap: str, directory: Path, topology: str, guarantee: str = "exactly_once_v2", **settings: object
    ) -> None:
        self.name = f"interop-{uuid.uuid4().hex[:8]}"
        self.topology = topology
        self._bootstrap = bootstrap
        self._directory = directory
        self._settings = {
            "application.id": self.name,
            "bootstrap.servers": bootstrap,
            "processing.guarantee": guarantee,
            "commit.interval.ms": 100,
            "statestore.cache.max.bytes": 0,
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 500,
            "__emit.interval.ms.kstreams.windowed.aggregation__": 0,
        } | {name.replace("_", "."): value for name, value in settings.items()}
        if settings.get("group_protocol") == "streams":
            self._heartbeat_often()
        # Silent: they outlive the broker by a moment, and would complain about it.
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        self._producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
        topics = [NewTopic(self.topic(name), PARTITIONS, 1) for name in (*INPUTS[topology], *OUTPUTS[topology])]
        for future in self._admin.create_topics(topics).values():
            future.result(SECONDS)

    def _heartbeat_often(self) -> None:
        """In a streams group the broker has these settings, and its heartbeats of 5 s make every move of a task take two."""
        for name in ("session.timeout.ms", "heartbeat.interval.ms"):
            del self._settings[name]
        with self._line() as line:
            call = set_group_settings(self.name, {"streams.heartbeat.interval.ms": "500"})
            assert line.ask(call, CLOCK.now_ms() + SECONDS * 1000).code is ErrorCode.NONE

    @contextmanager
    def _line(self) -> Iterator[CoordinatorLine]:
        line = CoordinatorLine(TcpConnector({"bootstrap.servers": self._bootstrap}, CLOCK), CLOCK, self.name)
        try:
            yield line
        finally:
            line.close()

    def topic(self, name: str) -> str:
        return f"{self.name}-{name}"

    def write(self, records: Iterable[Input]) -> None:
        for record in records:
            self._producer.produce(
                self.topic(record.topic),
                record.value,
                record.key,
                record.partition,
                timestamp=record.timestamp,
                headers=list(record.headers),
            )
        assert self._producer.flush(SECONDS) == 0

    def start(self, side: Side, state: str | None = None) -> None:
        """With an empty state directory, unless `state` names one that was used before."""
        side.start(self.topology, self.name, self.settings(state))

    def settings(self, state: str | None = None) -> dict[str, object]:
        directory = self._directory / (state or uuid.uuid4().hex)
        return self._settings | {"state.dir": directory}

    def wait_until_shared(self, members: int) -> None:
        """Until so many members of a streams group have tasks, and none is left to move."""

        def is_shared() -> bool:
            found = line.ask(describe(self.name), CLOCK.now_ms() + SECONDS * 1000).members
            return len(found) == members and all(m.tasks.active and m.tasks == m.target for m in found)

        with self._line() as line:
            wait_for(is_shared, f"{members} members of {self.name} to have their tasks")

    def run(self, side: Side, records: Iterable[Input], state: str | None = None) -> None:
        """Give the app to a side until everything is processed, and take it away again."""
        first, *others = waves(self.topology, list(records))
        self.write(first)
        self.start(side, state)
        self.wait_until_caught_up()
        for wave in others:
            self.write(wave)
            self.wait_until_caught_up()
        side.close()

    def ends(self) -> dict[ids.TopicPartition, int]:
        """Of the output topics, with what is not committed yet."""
        return self._ends(map(self.topic, OUTPUTS[self.topology]))

    def wait_for_growth_of_outputs(self, before: Mapping[ids.TopicPartition, int]) -> None:
        """Until results were written to some partition, committed or not."""
        wait_for(lambda: self.ends() != before, f"results of {self.name}")

    def wait_until_nobody_runs_it(self) -> None:
        """A killed member stays in its group until its session times out."""
        group = KafkaGroupAdmin({"bootstrap.servers": self._bootstrap})
        wait_for(lambda: group.members(self.name).is_empty, f"the group {self.name} to be empty")

    def wait_until_caught_up(self) -> None:
        """Until all input is committed; topics between the sub-topologies last, since they grow until then."""
        inputs = [self.topic(name) for name in INPUTS[self.topology]]
        wait_for(lambda: self._is_caught_up(inputs), f"{self.name} to read its input")
        for suffix in BETWEEN:
            topics = self.internal_topics(suffix)
            wait_for(partial(self._is_caught_up, topics), f"{self.name} to read its topics {suffix}")

    def _is_caught_up(self, topics: Sequence[str]) -> bool:
        ends = self._ends(topics)
        committed = self.committed(topics)
        return all(end == 0 or (p in committed and committed[p].offset >= end) for p, end in ends.items())

    def internal_topics(self, suffix: str) -> list[str]:
        known = self._admin.list_topics(timeout=SECONDS).topics
        return sorted(name for name in known if name.startswith(f"{self.name}-") and name.endswith(suffix))

    def internal_settings(self) -> dict[str, dict[str, str]]:
        """Of changelogs and topics between the sub-topologies: what whoever created them has set; named without the prefix."""
        topics = [topic for suffix in ("-changelog", *BETWEEN) for topic in self.internal_topics(suffix)]
        asked = self._admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic) for topic in topics])
        return {
            self._bare(resource.name): {
                entry.name: entry.value
                for entry in future.result(SECONDS).values()
                if entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
            }
            for resource, future in asked.items()
        }

    def _bare(self, topic: str) -> str:
        """Also a generated name may have the prefix, when it was made from the name of a topic."""
        return topic.removeprefix(f"{self.name}-").replace(self.name, "APP")

    def committed(self, topics: Iterable[str] | None = None) -> dict[ids.TopicPartition, CommittedOffset]:
        """Offsets with what is written beside them; of all inputs, unless topics are named."""
        chosen = topics or [*map(self.topic, INPUTS[self.topology]), *self.internal_topics("-repartition")]
        partitions = [ids.TopicPartition(topic, n) for topic in chosen for n in range(PARTITIONS)]
        with self._line() as line:
            found = OffsetClient(self.name, line, CLOCK).committed(partitions, SECONDS * 1000)
        return {p: CommittedOffset.parse(committed.offset, committed.metadata) for p, committed in found.items()}

    def results(self) -> dict[str, list[list[Result]]]:
        """What was written to each output topic, by partition, in its order."""
        return {
            name: [[_result(m) for m in messages] for messages in self.read(self.topic(name))]
            for name in OUTPUTS[self.topology]
        }

    def rows(self) -> dict[str, dict[bytes | None, bytes]]:
        """What a table of each output topic holds, over all partitions."""
        return {name: newest_values(chain.from_iterable(parts)) for name, parts in self.results().items()}

    def changelogs(self) -> dict[str, list[dict[bytes, Row]]]:
        """What a store restored from each changelog would hold, by partition; named without the prefix."""
        return {self._bare(topic): [_fold(m) for m in self.read(topic)] for topic in self.internal_topics("-changelog")}

    def read(self, topic: str) -> list[list[Message]]:
        """All committed records of a topic, by partition."""
        ends = self._ends([topic])
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "reader",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 50,
            }
        )
        partitions = [TopicPartition(topic, n, OFFSET_BEGINNING) for n in range(PARTITIONS)]
        messages: list[list[Message]] = [[] for _ in range(PARTITIONS)]
        consumer.assign(partitions)

        def has_all() -> bool:
            for message in consumer.consume(1000, 0.1):
                assert message.error() is None, message.error()
                messages[message.partition() or 0].append(message)
            at = {p.partition: p.offset for p in consumer.position(partitions)}
            return all(end == 0 or at[p.partition] >= end for p, end in ends.items())

        try:
            wait_for(has_all, f"the end of {topic}")
        finally:
            consumer.close()
        return messages

    def _ends(self, topics: Iterable[str]) -> dict[ids.TopicPartition, int]:
        asked = {TopicPartition(topic, n): OffsetSpec.latest() for topic in topics for n in range(PARTITIONS)}
        if not asked:
            return {}
        found = self._admin.list_offsets(asked)
        return {ids.TopicPartition(p.topic, p.partition): future.result(SECONDS).offset for p, future in found.items()}


def wait_for(condition: Callable[[], bool], what: str, seconds: float = SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s in vain for {what}"
        time.sleep(0.02)


def values_of(changelogs: Mapping[str, list[dict[bytes, Row]]]) -> dict[str, list[dict[bytes, bytes]]]:
    """Without the times and headers of rows, which are those of the last answer that was taken."""
    return {
        name: [{key: row.value for key, row in rows.items()} for rows in parts] for name, parts in changelogs.items()
    }


def newest_values(results: Iterable[Result]) -> dict[bytes | None, bytes]:
    """What a table of the topic holds."""
    return {key: value for key, value in {r.key: r.value for r in results}.items() if value is not None}


def _result(message: Message) -> Result:
    headers: Headers = tuple(message.headers() or ())  # type: ignore[arg-type]  # they may also be given as a dict, but not read
    return Result(message.key(), message.value(), message.timestamp()[1], headers)


def _fold(messages: Iterable[Message]) -> dict[bytes, Row]:
    rows: dict[bytes, Row] = {}
    for message in messages:
        key, value, timestamp, headers = _result(message)
        assert key is not None
        if value is None:
            rows.pop(key, None)
        else:
            rows[key] = Row(value, timestamp, headers)
    return rows


def times_of(
    committed: Mapping[ids.TopicPartition, CommittedOffset], app: str
) -> dict[str, tuple[int, dict[str, int]]]:
    """Partition time and processor metadata by partition, named without the prefix."""
    return {
        str(partition).removeprefix(f"{app}-"): (offset.partition_time, dict(offset.processor_metadata))
        for partition, offset in committed.items()
    }
