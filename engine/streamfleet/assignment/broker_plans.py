"""BrokerPlans: between a group that the broker plans and a StreamThread, whose reports and plans are the same in both protocols.

Made once per StreamThread of an app with `group.protocol=streams`. The broker names a sub-topology by its number, as text, and says
where queries go by input partitions; a StreamThread names it by its content id, and asks by task. Nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from streamfleet.assignment.snapshot import MemberReport, Plan, TaskKey
from streamfleet.ids import TopicPartition
from streamfleet.kafka.address import Address
from streamfleet.kafka.errors import GroupFatalError
from streamfleet.kafka.streams_group.values import BrokerTask, EndpointPartitions, TaskSets


class BrokerPlans:
    """Implements streamfleet.kafka.streams_group.protocol.StreamsGroupProtocol[MemberReport, Plan]."""

    def __init__(self, content_ids: Mapping[int, str], sources: Mapping[int, Collection[str]]) -> None:
        """Both by the numbers of sub-topologies: what each is, and which topics it reads."""
        self._content_ids = {str(number): content_id for number, content_id in content_ids.items()}
        self._numbers = {content_id: number for number, content_id in self._content_ids.items()}
        self._readers: dict[str, list[str]] = {}
        for number, topics in sources.items():
            for topic in topics:
                self._readers.setdefault(topic, []).append(content_ids[number])

    def owned(self, report: MemberReport) -> TaskSets:
        return TaskSets(active=self._to_broker(report.owned), standby=self._to_broker(report.standby))

    def requests_shutdown(self, report: MemberReport) -> bool:
        return report.shutdown_requested

    def plan(self, tasks: TaskSets, endpoints: Sequence[EndpointPartitions], *, shutdown: bool) -> Plan:
        return Plan(
            active=self._from_broker(tasks.active),
            standby=self._from_broker(tasks.standby),
            warmup=self._from_broker(tasks.warmup),
            fence=(),  # the broker does not say who ran a task before; by the time it moves one, its transaction has timed out
            follow_up=False,
            owners={},
            endpoints=self._by_endpoint((each.endpoint, each.active) for each in endpoints),
            standby_endpoints=self._by_endpoint((each.endpoint, each.standby) for each in endpoints),
            shutdown=shutdown,
        )

    def _to_broker(self, tasks: Iterable[TaskKey]) -> frozenset[BrokerTask]:
        return frozenset(BrokerTask(self._numbers[content_id], partition) for content_id, partition in tasks)

    def _from_broker(self, tasks: Iterable[BrokerTask]) -> tuple[TaskKey, ...]:
        unknown = sorted({number for number, _ in tasks} - self._content_ids.keys())
        if unknown:
            raise GroupFatalError(
                f"the broker gave tasks of sub-topologies that the app does not have: {', '.join(unknown)}",
                hint="all members of a streams group must run the same topology",
            )
        return tuple(sorted(TaskKey(self._content_ids[number], partition) for number, partition in tasks))

    def _by_endpoint(
        self, told: Iterable[tuple[Address, Collection[TopicPartition]]]
    ) -> dict[str, tuple[TaskKey, ...]]:
        """The broker tells of each member; all threads of a process have the same endpoint."""
        tasks: dict[str, set[TaskKey]] = {}
        for endpoint, partitions in told:
            tasks.setdefault(str(endpoint), set()).update(self._tasks_that_read(partitions))
        return {endpoint: tuple(sorted(read)) for endpoint, read in tasks.items()}

    def _tasks_that_read(self, partitions: Iterable[TopicPartition]) -> Iterator[TaskKey]:
        return (TaskKey(content_id, n) for topic, n in partitions for content_id in self._readers.get(topic, ()))
