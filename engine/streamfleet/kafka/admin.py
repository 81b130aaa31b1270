"""The Admin port over librdkafka: topics, their settings and their offsets.

Called by internal_topic_manager.py, by the commit (changelog offsets under at-least-once, purging of repartition
topics), by restore (where the log ends) and by the reset command. All calls are safe to repeat, and are repeated while
the cluster does not answer (broker_patience.py). Offsets of groups are the group client's.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from confluent_kafka import OFFSET_INVALID, IsolationLevel, KafkaError, TopicCollection
from confluent_kafka import TopicPartition as Partition
from confluent_kafka.admin import (
    AdminClient,
    ConfigResource,
    ListOffsetsResultInfo,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from streamfleet.ids import TopicPartition
from streamfleet.kafka.broker_patience import BrokerPatience
from streamfleet.kafka.client_errors import BrokerUnavailableError, KafkaClientError
from streamfleet.kafka.client_failures import call_client, client_error
from streamfleet.kafka.client_making import make_client
from streamfleet.ports import OffsetKind, TopicInfo, TopicToCreate

T = TypeVar("T")

ATTEMPT_TIMEOUT_MS = 5_000
"""One attempt waits no longer, so that progress can be told."""
_REFRESH_TIMEOUT_MS = 200

_NO_SUCH_TOPIC = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC)  # noqa: SLF001  (librdkafka's own)
_NO_LEADERS = KafkaError._NOENT  # noqa: SLF001  (what librdkafka remembers of a cluster that is just coming back)
_EARLIEST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # of confluent-kafka
_LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
_OFFSETS = {
    OffsetKind.EARLIEST: (_EARLIEST, IsolationLevel.READ_UNCOMMITTED),
    OffsetKind.HIGH_WATERMARK: (_LATEST, IsolationLevel.READ_UNCOMMITTED),
    OffsetKind.LAST_STABLE: (_LATEST, IsolationLevel.READ_COMMITTED),
}


class _NoSuchTopic(KafkaClientError):
    """The topic is not there; how bad that is depends on the question."""


class _TopicExists(KafkaClientError):
    """The topic is there already."""


class KafkaAdmin:
    """Implements Admin, and what ClusterReader asks about topics."""

    def __init__(self, settings: Mapping[str, Any], patience: BrokerPatience | None = None) -> None:
        self._client = make_client(AdminClient, settings)
        self._patience = patience or BrokerPatience()

    def with_patience(self, patience: BrokerPatience) -> KafkaAdmin:
        """Another one over the same client. To be closed by itself."""
        other = copy.copy(self)
        other._patience = patience  # noqa: SLF001  (it is one of ours)
        return other

    def topic_names(self) -> frozenset[str]:
        doing = "listing topics"

        def attempt(left_ms: int) -> frozenset[str]:
            answer = call_client(doing, lambda: self._client.list_topics(timeout=_seconds(left_ms)))
            return frozenset(answer.topics)

        return self._ask(doing, attempt)

    def describe_topics(self, names: Iterable[str]) -> dict[str, TopicInfo]:
        wanted = sorted(set(names))
        doing = f"describing topics {', '.join(wanted)}"

        def attempt(left_ms: int) -> dict[str, TopicInfo]:
            futures = self._client.describe_topics(TopicCollection(wanted), request_timeout=_seconds(left_ms))
            found = _results(doing, futures, _NoSuchTopic)
            return {name: TopicInfo(name, str(topic.topic_id), len(topic.partitions)) for name, topic in found.items()}

        return self._ask(doing, attempt) if wanted else {}

    def allowed_operations(self, names: Iterable[str]) -> dict[str, frozenset[str]]:
        """By Kafka's names, such as READ; nothing where the broker does not tell. Topics that are not there are left out."""
        wanted = sorted(set(names))
        doing = f"asking for the rights on topics {', '.join(wanted)}"

        def attempt(left_ms: int) -> dict[str, frozenset[str]]:
            futures = self._client.describe_topics(
                TopicCollection(wanted), include_authorized_operations=True, request_timeout=_seconds(left_ms)
            )
            found = _results(doing, futures, _NoSuchTopic)
            return {name: frozenset(each.name for each in t.authorized_operations or ()) for name, t in found.items()}

        return self._ask(doing, attempt) if wanted else {}

    def partition_racks(self, names: Iterable[str]) -> dict[TopicPartition, frozenset[str]]:
        wanted = sorted(set(names))
        doing = f"asking for the racks of topics {', '.join(wanted)}"

        def attempt(left_ms: int) -> dict[TopicPartition, frozenset[str]]:
            futures = self._client.describe_topics(TopicCollection(wanted), request_timeout=_seconds(left_ms))
            return {
                TopicPartition(name, partition.id): frozenset(node.rack for node in partition.replicas if node.rack)
                for name, topic in _results(doing, futures, _NoSuchTopic).items()
                for partition in topic.partitions
            }

        return self._ask(doing, attempt) if wanted else {}

    def create_topics(self, topics: Iterable[TopicToCreate]) -> frozenset[str]:
        wanted = [
            NewTopic(topic.name, topic.partitions, topic.replication_factor, config=topic.configs) for topic in topics
        ]
        doing = f"creating topics {', '.join(topic.topic for topic in wanted)}"

        def attempt(left_ms: int) -> frozenset[str]:
            futures = self._client.create_topics(wanted, request_timeout=_seconds(left_ms))
            return frozenset(_results(doing, futures, _TopicExists))

        if not wanted:
            return frozenset()
        created = self._ask(doing, attempt)
        self._await_visible([topic.topic for topic in wanted])
        return created

    def describe_configs(self, names: Iterable[str]) -> dict[str, dict[str, str]]:
        wanted = [ConfigResource(ResourceType.TOPIC, name) for name in sorted(set(names))]
        doing = f"reading the settings of topics {', '.join(resource.name for resource in wanted)}"

        def attempt(left_ms: int) -> dict[str, dict[str, str]]:
            futures = self._client.describe_configs(wanted, request_timeout=_seconds(left_ms))
            found = _results(doing, {resource.name: future for resource, future in futures.items()}, _NoSuchTopic)
            return {name: {key: entry.value for key, entry in configs.items()} for name, configs in found.items()}

        return self._ask(doing, attempt) if wanted else {}

    def list_offsets(self, partitions: Iterable[TopicPartition], kind: OffsetKind) -> dict[TopicPartition, int]:
        spec, isolation = _OFFSETS[kind]
        wanted = {Partition(partition.topic, partition.partition): spec for partition in partitions}
        doing = f"asking for the {kind.value} offsets of {len(wanted)} partitions"

        def attempt(left_ms: int) -> dict[TopicPartition, int]:
            futures = self._client.list_offsets(wanted, isolation_level=isolation, request_timeout=_seconds(left_ms))
            return _answered(doing, _by_partition(doing, futures))

        return self._ask(doing, attempt) if wanted else {}

    def offsets_since(self, partitions: Iterable[TopicPartition], since_ms: int) -> dict[TopicPartition, int]:
        wanted = list(partitions)
        spec: OffsetSpec = OffsetSpec.for_timestamp(since_ms)
        doing = f"asking for the offsets of {len(wanted)} partitions at a time"

        def attempt(left_ms: int) -> dict[TopicPartition, int]:
            asked = {Partition(partition.topic, partition.partition): spec for partition in wanted}
            futures = self._client.list_offsets(asked, request_timeout=_seconds(left_ms))
            return _answered(doing, _by_partition(doing, futures))

        found = self._ask(doing, attempt) if wanted else {}
        later = [partition for partition, offset in found.items() if offset < 0]  # nothing is that young
        return found | self.list_offsets(later, OffsetKind.LAST_STABLE)

    def delete_records(self, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        wanted = [Partition(partition.topic, partition.partition, offset) for partition, offset in before.items()]
        doing = f"deleting records of {len(wanted)} partitions"

        def attempt(left_ms: int) -> dict[TopicPartition, int]:
            futures = self._client.delete_records(wanted, request_timeout=_seconds(left_ms))
            return {partition: deleted.low_watermark for partition, deleted in _by_partition(doing, futures).items()}

        return self._ask(doing, attempt) if wanted else {}

    def delete_topics(self, names: Iterable[str]) -> frozenset[str]:
        wanted = sorted(set(names))
        doing = f"deleting topics {', '.join(wanted)}"

        def attempt(left_ms: int) -> frozenset[str]:
            futures = self._client.delete_topics(wanted, request_timeout=_seconds(left_ms))
            return frozenset(_results(doing, futures, _NoSuchTopic))

        return self._ask(doing, attempt) if wanted else frozenset()

    def close(self) -> None:
        vars(self).pop("_client", None)  # librdkafka ends with the last reference

    def _await_visible(self, names: list[str]) -> None:
        """The controller answers before the broker that is asked next has heard of the topic."""

        def attempt(_: int) -> None:
            unseen = sorted(set(names) - self.describe_topics(names).keys())
            if unseen:
                raise BrokerUnavailableError(f"not visible yet: {', '.join(unseen)}", code="UNKNOWN_TOPIC_OR_PART")

        self._patience.ask("waiting for new topics", attempt)

    def _ask(self, doing: str, attempt: Callable[[int], T]) -> T:
        def attempt_or_refresh(left_ms: int) -> T:
            try:
                return attempt(left_ms)
            except BrokerUnavailableError:
                self._refresh_leaders()
                raise

        try:
            return self._patience.ask(doing, attempt_or_refresh)
        finally:
            self._client.poll(0)  # brings the client's log lines out

    def _refresh_leaders(self) -> None:
        """The client asks the leaders it remembers: after a broker's restart it would be told, for ever, that its leader epoch
        is an old one.
        """
        with contextlib.suppress(KafkaClientError):  # the cluster is still away; the next attempt says so
            call_client("asking for leaders", lambda: self._client.list_topics(timeout=_REFRESH_TIMEOUT_MS / 1000))


def _seconds(left_ms: int) -> float:
    return min(left_ms, ATTEMPT_TIMEOUT_MS) / 1000


def _results(doing: str, futures: Mapping[str, Future[T]], left_out: type[KafkaClientError]) -> dict[str, T]:
    """Results by name, without those that failed with `left_out`; any other failure is raised."""
    results = {}
    for name, future in futures.items():
        try:
            results[name] = call_client(f"{doing}: {name}", future.result, translate=_about_topic)
        except left_out:
            continue
    return results


def _by_partition(doing: str, futures: Mapping[Partition, Future[T]]) -> dict[TopicPartition, T]:
    return {
        TopicPartition(partition.topic, partition.partition): call_client(
            f"{doing}: {partition.topic}", future.result, translate=_about_partition
        )
        for partition, future in futures.items()
    }


def _answered(doing: str, found: Mapping[TopicPartition, ListOffsetsResultInfo]) -> dict[TopicPartition, int]:
    """The offsets. A broker that dies with the request under way is no error to librdkafka: it answers with no offset, and whoever
    takes that for the end of a changelog takes an empty store for a complete one.
    """
    for partition, info in found.items():
        if info.offset == OFFSET_INVALID:
            raise BrokerUnavailableError(f"{doing} failed: no answer about {partition}", code="_TRANSPORT")
    return {partition: info.offset for partition, info in found.items()}


def _about_partition(error: KafkaError, doing: str) -> Exception:
    if error.code() == _NO_LEADERS:
        return BrokerUnavailableError(f"{doing} failed: {error.str()} ({error.name()})", code=error.name())
    return client_error(error, doing)


def _about_topic(error: KafkaError, doing: str) -> Exception:
    if error.code() in _NO_SUCH_TOPIC:
        return _NoSuchTopic(f"{doing}: there is no such topic", code=error.name())
    if error.code() == KafkaError.TOPIC_ALREADY_EXISTS:
        return _TopicExists(f"{doing}: the topic exists", code=error.name())
    return client_error(error, doing)
