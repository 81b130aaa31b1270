"""A group seen from outside it: who is in it, deleting it, its offsets. Used by the reset command; the platform asks for streams
groups, which no admin client sees.

A running app never comes here: its members read and write the group's offsets themselves (group_client.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

import msgspec
from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions, KafkaError
from confluent_kafka import TopicPartition as Partition
from confluent_kafka.admin import AdminClient

from streamfleet.ids import TopicPartition
from streamfleet.kafka.broker_patience import BrokerPatience
from streamfleet.kafka.client_errors import KafkaClientError
from streamfleet.kafka.client_failures import call_client, client_error
from streamfleet.kafka.client_making import make_client
from streamfleet.kafka.connection import TcpConnector
from streamfleet.kafka.coordinator import CoordinatorLine
from streamfleet.kafka.error_codes import ErrorCode
from streamfleet.kafka.errors import GroupFatalError, UnsupportedBrokerError
from streamfleet.kafka.offset_client import OffsetClient
from streamfleet.kafka.patience import MonotonicClock
from streamfleet.kafka.streams_group.describe import describe

T = TypeVar("T")

ATTEMPT_TIMEOUT_SECONDS = 5.0
STREAMS_GROUP_TIMEOUT_MS = 30_000
COMMITTED_TIMEOUT_MS = 30_000
_GONE = (ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD)


class GroupBusyError(KafkaClientError):
    """The group has members: stop them first."""


class _NoSuchGroup(KafkaClientError):
    """The group is not there."""


class GroupMembers(msgspec.Struct, frozen=True):
    """`is_empty` also while nobody has ever been in the group."""

    is_empty: bool
    state: str
    members: tuple[str, ...]
    """As client id at host."""


def streams_group_members(
    settings: Mapping[str, Any], group: str, timeout_ms: int = STREAMS_GROUP_TIMEOUT_MS
) -> GroupMembers | None:
    """Of a group whose broker plans the tasks; None: there is no such group. StreamsError: the coordinator did not say."""
    clock = MonotonicClock()
    line = CoordinatorLine(TcpConnector(settings, clock, not_needed=()), clock, group)
    try:
        answer = line.ask(describe(group), clock.now_ms() + timeout_ms)
    except UnsupportedBrokerError:
        return None  # a broker without streams groups has none
    finally:
        line.close()
    if answer.code is ErrorCode.GROUP_ID_NOT_FOUND:
        return None
    if answer.code is not ErrorCode.NONE:
        raise GroupFatalError(
            f"group {group} cannot be described ({answer.code.name}: {answer.message})",
            hint="grant READ on the group with the application id",
        )
    names = tuple(sorted(f"{member.client_id} at {member.host.lstrip('/')}" for member in answer.members))
    return GroupMembers(not names, answer.state.lower(), names)


class KafkaGroupAdmin:
    def __init__(self, settings: Mapping[str, Any], patience: BrokerPatience | None = None) -> None:
        self._settings = settings
        self._client = make_client(AdminClient, settings)
        self._patience = patience or BrokerPatience()

    def members(self, group: str) -> GroupMembers:
        def attempt() -> GroupMembers:
            [future] = self._client.describe_consumer_groups([group], request_timeout=ATTEMPT_TIMEOUT_SECONDS).values()
            found = call_client(f"describing group {group}", future.result, translate=_about_group)
            names = tuple(sorted(f"{member.client_id} at {member.host.lstrip('/')}" for member in found.members))
            return GroupMembers(found.state in _GONE, found.state.name.lower(), names)

        nobody = GroupMembers(is_empty=True, state="dead", members=())
        try:
            found = self._ask(f"describing group {group}", attempt)
        except _NoSuchGroup:
            found = nobody
        # The admin client takes a streams group with members for one that is not there.
        return streams_group_members(self._settings, group) or found if found == nobody else found

    def committed(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Those that have an offset. By our own client: librdkafka's ends the process when the coordinator is not ready."""
        clock = MonotonicClock()
        line = CoordinatorLine(TcpConnector(self._settings, clock, not_needed=()), clock, group)
        try:
            found = OffsetClient(group, line, clock).committed(partitions, COMMITTED_TIMEOUT_MS)
        finally:
            line.close()
        return {partition: committed.offset for partition, committed in found.items()}

    def delete(self, group: str) -> bool:
        """Forget the group with all its offsets; False if it was not there. GroupBusyError if it has members."""
        doing = f"deleting group {group}"

        def attempt() -> bool:
            [future] = self._client.delete_consumer_groups([group], request_timeout=ATTEMPT_TIMEOUT_SECONDS).values()
            call_client(doing, future.result, translate=_about_group)
            return True

        try:
            return self._ask(doing, attempt)
        except _NoSuchGroup:
            return False

    def set_offsets(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Where the group's next members will begin. GroupBusyError if it has members."""
        if not offsets:
            return
        chosen = [Partition(partition.topic, partition.partition, offset) for partition, offset in offsets.items()]
        doing = f"setting the offsets of group {group}"

        def attempt() -> None:
            request = [ConsumerGroupTopicPartitions(group, chosen)]
            [future] = self._client.alter_consumer_group_offsets(
                request, request_timeout=ATTEMPT_TIMEOUT_SECONDS
            ).values()
            answer = call_client(doing, future.result, translate=_about_group)
            for partition in answer.topic_partitions:
                if partition.error is not None:
                    raise _about_group(partition.error, f"{doing}: {partition.topic}-{partition.partition}")

        self._ask(doing, attempt)

    def _ask(self, doing: str, attempt: Callable[[], T]) -> T:
        try:
            return self._patience.ask(doing, lambda _: attempt())
        finally:
            self._client.poll(0)  # brings the client's log lines out


def _about_group(error: KafkaError, doing: str) -> KafkaClientError:
    if error.code() == KafkaError.GROUP_ID_NOT_FOUND:
        return _NoSuchGroup(f"{doing}: there is no such group", code=error.name())
    if error.code() in (KafkaError.NON_EMPTY_GROUP, KafkaError.UNKNOWN_MEMBER_ID, KafkaError.REBALANCE_IN_PROGRESS):
        return GroupBusyError(
            f"{doing} was refused: the group has members", code=error.name(), hint="stop all workers of the app first"
        )
    return client_error(error, doing)
