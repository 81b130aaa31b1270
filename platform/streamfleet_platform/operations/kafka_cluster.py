"""The Cluster port over librdkafka's admin client. Made by server/ for every cluster that an app names.

A cluster that did not answer in time is not asked again for a while: many apps may wait for it, and a pass must come to the others.

Committed offsets are asked for by a consumer that joins nothing: the admin client (2.16, list_consumer_group_offsets) ends the
whole process when a coordinator answers that it is not ready.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Any, Concatenate, ParamSpec, TypeVar

from confluent_kafka import (
    Consumer,
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

import streamfleet
from streamfleet_platform.errors import ConflictError, FleetError, InvalidRequestError, TransientError
from streamfleet_platform.operations.cluster import GroupFacts, StartAt, TopicFacts, TopicWanted

_SECONDS = 10.0
_PAUSE_SECONDS = 0.05
_NO_TOPIC = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC)  # noqa: SLF001  (librdkafka's own)
_BUSY_GROUP = (KafkaError.NON_EMPTY_GROUP, KafkaError.UNKNOWN_MEMBER_ID, KafkaError.REBALANCE_IN_PROGRESS)
_REFUSED = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.INVALID_CONFIG,
    KafkaError.INVALID_PARTITIONS,
    KafkaError.INVALID_REPLICATION_FACTOR,
    KafkaError.POLICY_VIOLATION,
    KafkaError.TOPIC_DELETION_DISABLED,
)
_SILENT = (KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN)  # noqa: SLF001  (librdkafka's own)
_REST_SECONDS = 5.0
_GONE = (ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD)
_NOBODY = GroupFacts(is_empty=True, state="dead")
_SPECS: Mapping[StartAt, Any] = {"earliest": OffsetSpec.earliest(), "latest": OffsetSpec.latest()}  # type: ignore[no-untyped-call]


P = ParamSpec("P")
T = TypeVar("T")


class SilentClusterError(TransientError):
    """It did not answer in time."""


def _asking(method: Callable[Concatenate[KafkaCluster, P], T]) -> Callable[Concatenate[KafkaCluster, P], T]:
    @functools.wraps(method)
    def ask(self: KafkaCluster, /, *args: P.args, **kwargs: P.kwargs) -> T:
        self._refuse_while_silent()
        try:
            return method(self, *args, **kwargs)
        except SilentClusterError as error:
            self._note_silence(error)
            raise

    return ask


class KafkaCluster:
    """`settings` are complete client settings, secrets filled in."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = {**settings, "log_level": 0}
        self._admin = AdminClient(dict(self._settings))
        self._silence: tuple[float, SilentClusterError] | None = None
        """Until when it is left alone, and what it has met last."""

    def _refuse_while_silent(self) -> None:
        silence = self._silence
        if silence is not None and time.monotonic() < silence[0]:
            raise SilentClusterError(silence[1].fact, hint=silence[1].hint, retry_after=_REST_SECONDS)

    def _note_silence(self, error: SilentClusterError) -> None:
        if self._silence is None or time.monotonic() >= self._silence[0]:
            self._silence = (time.monotonic() + _REST_SECONDS, error)

    def close(self) -> None:
        vars(self).pop("_admin", None)  # librdkafka ends with the last reference

    @_asking
    def topics(self, names: Iterable[str]) -> dict[str, TopicFacts]:
        wanted = sorted(set(names))
        if not wanted:
            return {}
        futures = self._admin.describe_topics(TopicCollection(wanted), request_timeout=_SECONDS)
        found = {name: _result("describing topics", future, absent=_NO_TOPIC) for name, future in futures.items()}
        return {
            name: TopicFacts(name, str(topic.topic_id), len(topic.partitions))
            for name, topic in found.items()
            if topic is not None
        }

    @_asking
    def create_topics(self, topics: Iterable[TopicWanted]) -> None:
        wanted = {topic.name: topic for topic in topics}
        missing = [topic for name, topic in wanted.items() if name not in self.topics(wanted)]
        new = [NewTopic(topic.name, topic.partitions, -1, config=dict(topic.configs)) for topic in missing]
        if new:
            for name, future in self._admin.create_topics(new, request_timeout=_SECONDS).items():
                _result(f"creating topic {name}", future, absent=(KafkaError.TOPIC_ALREADY_EXISTS,))
        self._await(lambda: wanted.keys() <= self.topics(wanted).keys(), "new topics are not visible yet")

    @_asking
    def delete_topics(self, topics: Mapping[str, str]) -> tuple[str, ...]:
        ours = [name for name, facts in self.topics(topics).items() if facts.topic_id == topics[name]]
        if ours:
            for name, future in self._admin.delete_topics(ours, request_timeout=_SECONDS).items():
                _result(f"deleting topic {name}", future, absent=_NO_TOPIC)
            self._await(lambda: not self._still_there(ours, topics), "deleted topics are still visible")
        return tuple(ours)

    def _still_there(self, names: list[str], ids: Mapping[str, str]) -> list[str]:
        return [name for name, facts in self.topics(names).items() if facts.topic_id == ids[name]]

    @_asking
    def configs(self, names: Iterable[str]) -> dict[str, dict[str, str]]:
        wanted = [ConfigResource(ResourceType.TOPIC, name) for name in sorted(set(names))]
        if not wanted:
            return {}
        futures = self._admin.describe_configs(wanted, request_timeout=_SECONDS)
        found = {of.name: _result("reading topic settings", future, absent=_NO_TOPIC) for of, future in futures.items()}
        return {
            name: {key: entry.value for key, entry in configs.items()}
            for name, configs in found.items()
            if configs is not None
        }

    @_asking
    def alter_configs(self, configs: Mapping[str, Mapping[str, str]]) -> None:
        there = self.configs(configs)
        changes = [
            ConfigResource(
                ResourceType.TOPIC, name, incremental_configs=[_entry(*each) for each in configs[name].items()]
            )
            for name in sorted(there)
            if configs[name]
        ]
        if changes:
            for of, future in self._admin.incremental_alter_configs(changes, request_timeout=_SECONDS).items():
                _result(f"altering settings of topic {of.name}", future, absent=_NO_TOPIC)

    @_asking
    def end_offsets(self, names: Iterable[str]) -> dict[str, dict[int, int]]:
        places = self._places(names)
        if not places:
            return {}
        asked = self._admin.list_offsets(dict.fromkeys(places, _SPECS["latest"]), request_timeout=_SECONDS)
        found: dict[str, dict[int, int]] = {}
        for place, future in asked.items():
            offset = _result("asking for offsets", future, absent=_NO_TOPIC)  # deleted meanwhile
            if offset is not None:
                found.setdefault(place.topic, {})[place.partition] = offset.offset
        return found

    def group(self, group: str) -> GroupFacts:
        """Before something is done that members may not see: the admin client takes a streams group for one that is not there."""
        found = self.groups([group])[group]
        return self._streams_group(group) or found if found == _NOBODY else found

    @_asking
    def _streams_group(self, group: str) -> GroupFacts | None:
        try:
            found = streamfleet.streams_group_members(self._settings, group, int(_SECONDS * 1000))
        except streamfleet.StreamsError as error:
            raise TransientError(f"describing group {group}: {error.fact}", hint=error.hint) from error
        return None if found is None else GroupFacts(found.is_empty, found.state, found.members)

    @_asking
    def groups(self, groups: Iterable[str]) -> dict[str, GroupFacts]:
        wanted = sorted(set(groups))
        if not wanted:
            return {}
        futures = self._admin.describe_consumer_groups(wanted, request_timeout=_SECONDS)
        return {group: _group_facts(group, future) for group, future in futures.items()}

    @_asking
    def delete_group(self, group: str) -> None:
        [future] = self._admin.delete_consumer_groups([group], request_timeout=_SECONDS).values()
        _result(f"deleting group {group}", future, absent=(KafkaError.GROUP_ID_NOT_FOUND,))

    @_asking
    def set_offsets(self, group: str, topics: Iterable[str], start_at: StartAt) -> dict[str, int]:
        places = self._places(topics)
        if not places:
            return {}
        asked = self._admin.list_offsets(dict.fromkeys(places, _SPECS[start_at]), request_timeout=_SECONDS)
        chosen = [
            TopicPartition(place.topic, place.partition, _result("asking for offsets", future).offset)
            for place, future in asked.items()
        ]
        request = [ConsumerGroupTopicPartitions(group, chosen)]
        [altered] = self._admin.alter_consumer_group_offsets(request, request_timeout=_SECONDS).values()
        for partition in _result(f"setting the offsets of group {group}", altered).topic_partitions:
            if partition.error is not None:
                raise _error(partition.error, f"setting the offset of {partition.topic}-{partition.partition}")
        return {name: sum(place.topic == name for place in places) for name in {place.topic for place in places}}

    @_asking
    def committed(self, group: str, topics: Iterable[str]) -> dict[str, int]:
        places = self._places(topics)
        if not places:
            return {}
        asked = self._admin.list_offsets(dict.fromkeys(places, _SPECS["earliest"]), request_timeout=_SECONDS)
        begins = {(p.topic, p.partition): _result("asking for offsets", future).offset for p, future in asked.items()}
        consumer = Consumer({**self._settings, "group.id": group, "enable.auto.commit": False})
        try:
            found = consumer.committed(places, timeout=_SECONDS)
        except KafkaException as error:
            raise _error(error.args[0], f"asking for the offsets of group {group}") from error
        finally:
            consumer.close()
        processed: dict[str, int] = {}
        for place in found:
            done = max(0, place.offset - begins[place.topic, place.partition]) if place.offset >= 0 else 0
            processed[place.topic] = processed.get(place.topic, 0) + done
        return processed

    def _places(self, topics: Iterable[str]) -> list[TopicPartition]:
        found = self.topics(topics)
        return [TopicPartition(name, number) for name in sorted(found) for number in range(found[name].partitions)]

    def _await(self, is_so: Any, otherwise: str) -> None:
        deadline = time.monotonic() + _SECONDS
        while not is_so():
            if time.monotonic() > deadline:
                raise TransientError(otherwise)
            time.sleep(_PAUSE_SECONDS)


def _entry(name: str, value: str) -> ConfigEntry:
    return ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)


def _group_facts(group: str, future: Future[Any]) -> GroupFacts:
    found = _result(f"describing group {group}", future, absent=(KafkaError.GROUP_ID_NOT_FOUND,))
    if found is None:
        return _NOBODY
    names = tuple(sorted(f"{member.client_id} at {member.host.lstrip('/')}" for member in found.members))
    instances = tuple(sorted(member.group_instance_id for member in found.members if member.group_instance_id))
    return GroupFacts(found.state in _GONE, found.state.name.lower(), names, instances)


def _result(doing: str, future: Future[Any], absent: tuple[int, ...] = ()) -> Any:
    try:
        return future.result(_SECONDS + 5)
    except KafkaException as error:
        if error.args[0].code() in absent:
            return None
        raise _error(error.args[0], doing) from error
    except TimeoutError as error:
        raise SilentClusterError(f"{doing}: the cluster does not answer", hint="is it up?") from error


def _error(error: KafkaError, doing: str) -> FleetError:
    if error.code() in _BUSY_GROUP:
        return ConflictError(f"{doing} was refused: the group has members", hint="stop all its workers first")
    if error.code() in _REFUSED:
        return InvalidRequestError(f"{doing} was refused: {error.str()}", hint="ask who runs the cluster")
    kind = SilentClusterError if error.code() in _SILENT else TransientError
    return kind(f"{doing}: {error.str()}", hint="is the cluster up?", retry_after=2.0)
