"""The app's group: whether anybody is in it, and where it goes on reading. Called by job.py before every step, and at last to
set the offsets, with the stream time beside them as the engine itself commits it.

The offsets that the group had are kept in the run's directory before they are changed; an abort puts them back.
"""

from __future__ import annotations

from typing import Any

from streamfleet.ids import TopicPartition
from streamfleet.kafka.admin import KafkaAdmin
from streamfleet.kafka.connection import TcpConnector
from streamfleet.kafka.coordinator import CoordinatorLine
from streamfleet.kafka.errors import GroupError, UnstableOffsetError
from streamfleet.kafka.group_admin import KafkaGroupAdmin
from streamfleet.kafka.group_messages import ConsumerGroupMetadata
from streamfleet.kafka.offset_client import OffsetClient
from streamfleet.kafka.offset_messages import CommittedOffset as WireOffset
from streamfleet.kafka.patience import MonotonicClock
from streamfleet.ports import OffsetKind
from streamfleet.task.offsets import CommittedOffset
from streamfleet_jobs.bootstrap.changelog_topic import client_settings
from streamfleet_jobs.bootstrap.spec import BootstrapSpec
from streamfleet_jobs.errors import RefusedError, UnavailableError

_OPEN_TRANSACTION_MS = 2_000
_ANSWER_MS = 30_000


class AppGroup:
    def __init__(self, spec: BootstrapSpec, admin: KafkaAdmin) -> None:
        self._spec = spec
        self._admin = admin
        self._group = spec.app.application_id
        self._groups = KafkaGroupAdmin(client_settings(spec))

    def check_idle(self) -> None:
        """Refuse while the app runs, or one of its transactions is open."""
        found = self._groups.members(self._group)
        if not found.is_empty:
            raise RefusedError(
                f"group {self._group} is {found.state}, with {', '.join(found.members) or 'members'}",
                hint="stop the app; a static member counts until session.timeout.ms after its end",
            )
        self.committed()

    def check_input(self, next_offsets: dict[int, int]) -> None:
        """The log must still have everything that the table has not."""
        topic = self._spec.input.topic
        found = self._admin.describe_topics([topic]).get(topic)
        if found is None or found.partitions != self._spec.input.partitions:
            actual = "is not there" if found is None else f"has {found.partitions} partitions"
            raise RefusedError(
                f"topic {topic} {actual}, the spec says {self._spec.input.partitions}", hint="make a new spec"
            )
        starts = self._offsets(topic, self._spec.input.partitions, OffsetKind.EARLIEST)
        ends = self._offsets(topic, self._spec.input.partitions, OffsetKind.HIGH_WATERMARK)
        for partition, offset in next_offsets.items():
            if starts[partition] > offset:
                raise RefusedError(
                    f"{topic}-{partition} begins at {starts[partition]}, the table ends before {offset}: records are lost",
                    hint="land a newer table",
                )
            if ends[partition] < offset:
                raise RefusedError(
                    f"{topic}-{partition} ends at {ends[partition]}, the table at {offset}: it is of another topic",
                    hint="name the topic that the table was landed from",
                )

    def _offsets(self, topic: str, partitions: int, kind: OffsetKind) -> dict[int, int]:
        asked = [TopicPartition(topic, number) for number in range(partitions)]
        return {partition.partition: offset for partition, offset in self._admin.list_offsets(asked, kind).items()}

    def targets(
        self, next_offsets: dict[int, int], stream_times: dict[int, int], observed: dict[int, int]
    ) -> dict[TopicPartition, WireOffset]:
        """Where the group will begin, and with which stream time. Everything in a repartition topic came from records before,
        or will come again; `observed` is the stream time of its tasks.
        """
        spec = self._spec
        targets = {
            TopicPartition(spec.input.topic, partition): _wire(offset, stream_times.get(partition, -1))
            for partition, offset in next_offsets.items()
        }
        if spec.input.through is not None:
            found = self._admin.describe_topics([spec.input.through]).get(spec.input.through)
            ends = (
                {} if found is None else self._offsets(spec.input.through, found.partitions, OffsetKind.HIGH_WATERMARK)
            )
            targets |= {
                TopicPartition(spec.input.through, p): _wire(offset, observed.get(p, -1)) for p, offset in ends.items()
            }
        return targets

    def committed(self) -> dict[TopicPartition, WireOffset]:
        spec = self._spec
        asked = [TopicPartition(spec.input.topic, number) for number in range(spec.input.partitions)]
        if spec.input.through is not None:
            asked += [TopicPartition(spec.input.through, number) for number in range(spec.store.partitions)]
        with _Offsets(spec) as client:
            try:
                return client.committed(asked, _OPEN_TRANSACTION_MS)
            except UnstableOffsetError as error:
                raise RefusedError(
                    f"a transaction of {self._group} is open", hint="wait until it has timed out, then run again"
                ) from error
            except GroupError as error:
                raise UnavailableError(
                    f"the offsets of {self._group} cannot be read: {error}", hint="run again"
                ) from error

    def set(self, targets: dict[TopicPartition, WireOffset]) -> None:
        """Set and read back. The broker refuses it if a member has come meanwhile."""
        with _Offsets(self._spec) as client:
            try:
                client.commit(ConsumerGroupMetadata(self._group), targets, _ANSWER_MS)
            except GroupError as error:
                raise RefusedError(
                    f"the offsets of {self._group} cannot be set: {error}", hint="stop the app"
                ) from error
        found = self.committed()
        wrong = sorted(str(p) for p, target in targets.items() if found.get(p) != target)
        if wrong:
            raise RefusedError(
                f"offsets of {', '.join(wrong)} were changed by somebody else", hint="stop the app, run again"
            )

    def put_back(self, former: list[dict[str, Any]]) -> None:
        """As it was. Where the group had no offset it gets the log's begin, which is where it would have begun."""
        targets = {
            TopicPartition(one["topic"], one["partition"]): WireOffset(one["offset"], one["metadata"]) for one in former
        }
        spec = self._spec
        topics = {spec.input.topic: spec.input.partitions}
        if spec.input.through is not None:
            found = self._admin.describe_topics([spec.input.through]).get(spec.input.through)
            topics |= {} if found is None else {spec.input.through: found.partitions}
        for topic, partitions in topics.items():
            begins = self._offsets(topic, partitions, OffsetKind.EARLIEST)
            targets = {TopicPartition(topic, p): WireOffset(offset, "") for p, offset in begins.items()} | targets
        self.set(targets)


class _Offsets:
    """An OffsetClient for as long as the block lasts."""

    def __init__(self, spec: BootstrapSpec) -> None:
        clock = MonotonicClock()
        line = CoordinatorLine(
            TcpConnector(client_settings(spec), clock, not_needed=()), clock, spec.app.application_id
        )
        self._client = OffsetClient(spec.app.application_id, line, clock)

    def __enter__(self) -> OffsetClient:
        return self._client

    def __exit__(self, *_: object) -> None:
        self._client.close()


def _wire(offset: int, stream_time: int) -> WireOffset:
    return WireOffset(offset, CommittedOffset(offset, stream_time).metadata)


def as_detail(offsets: dict[TopicPartition, WireOffset]) -> list[dict[str, Any]]:
    return [
        {"topic": p.topic, "partition": p.partition, "offset": o.offset, "metadata": o.metadata}
        for p, o in sorted(offsets.items(), key=lambda item: (item[0].topic, item[0].partition))
    ]
