"""What a broker says of topics: partitions and their leaders, settings, and the range of offsets that an audit is pinned to.

Called once per run, before anything is read: later records are none of this run's. The end is the last stable offset, so that no
open transaction is waited for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec, ResourceType

from streamfleet_jobs.errors import UnavailableError

_SECONDS = 30.0


class PartitionPin(msgspec.Struct, frozen=True):
    """Offsets [start, end) of one partition, and who leads it (None: nobody)."""

    start: int
    end: int
    leader: tuple[str, int] | None = None


class TopicPin(msgspec.Struct, frozen=True):
    """A topic at the time of pinning; no partitions: it does not exist."""

    name: str
    partitions: dict[int, PartitionPin] = {}
    configs: dict[str, str] = {}

    @property
    def exists(self) -> bool:
        return bool(self.partitions)


def client_settings(bootstrap_servers: str, client_config: Mapping[str, str]) -> dict[str, str | int | float | bool]:
    return {"log_level": 0, **client_config, "bootstrap.servers": bootstrap_servers}


def pin_topics(bootstrap_servers: str, client_config: Mapping[str, str], names: Sequence[str]) -> dict[str, TopicPin]:
    """The topics as they are now, by name."""
    admin = AdminClient(client_settings(bootstrap_servers, client_config))
    try:
        metadata = admin.list_topics(timeout=_SECONDS)
        known = [name for name in names if name in metadata.topics]
        places = [TopicPartition(name, number) for name in known for number in metadata.topics[name].partitions]
        starts = _offsets(admin, places, OffsetSpec.earliest())  # type: ignore[no-untyped-call]
        ends = _offsets(admin, places, OffsetSpec.latest())  # type: ignore[no-untyped-call]
        configs = _configs(admin, known)
    except KafkaException as error:
        raise UnavailableError(
            f"the cluster does not answer: {error}", hint="check bootstrap_servers, run it again"
        ) from error
    pins = {name: TopicPin(name) for name in names}
    for name in known:
        partitions: dict[int, PartitionPin] = {}
        for number, partition in sorted(metadata.topics[name].partitions.items()):
            broker = metadata.brokers.get(partition.leader)
            leader = None if broker is None else (str(broker.host), broker.port)
            partitions[number] = PartitionPin(starts[name, number], ends[name, number], leader)
        pins[name] = TopicPin(name, partitions, configs[name])
    return pins


def topic_names(bootstrap_servers: str, client_config: Mapping[str, str]) -> list[str]:
    """Of all topics that can be seen."""
    try:
        return sorted(
            AdminClient(client_settings(bootstrap_servers, client_config)).list_topics(timeout=_SECONDS).topics
        )
    except KafkaException as error:
        raise UnavailableError(f"the cluster does not answer: {error}", hint="run it again") from error


def _offsets(admin: AdminClient, places: Sequence[TopicPartition], which: OffsetSpec) -> dict[tuple[str, int], int]:
    if not places:
        return {}
    asked = admin.list_offsets(
        dict.fromkeys(places, which), isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=_SECONDS
    )
    return {(at.topic, at.partition): future.result().offset for at, future in asked.items()}


def _configs(admin: AdminClient, names: Sequence[str]) -> dict[str, dict[str, str]]:
    if not names:
        return {}
    asked = admin.describe_configs(
        [ConfigResource(ResourceType.TOPIC, name) for name in names], request_timeout=_SECONDS
    )
    return {
        resource.name: {entry.name: entry.value for entry in future.result().values() if entry.value is not None}
        for resource, future in asked.items()
    }
