"""StallWatch: a clock for every partition that has to be read up to an end. One that gives nothing is said once and counted, and is
an error after the time-out of a task.

Looked at by the StateUpdater while active tasks are restored, and by the GlobalUpdater while it fills its stores: neither may wait
for ever. What the consumer said about a partition is the cause; if it said nothing, the cluster is asked whether an open
transaction hides what is there. Time in which nobody looks (the process stood still) does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import structlog

from streamfleet.ids import TopicPartition
from streamfleet.kafka.client_errors import BrokerUnavailableError, KafkaClientError, PartitionUnreadableError
from streamfleet.kafka.read_troubles import CountStall, ReadTroubles, count_nothing
from streamfleet.ports import OffsetKind

log = structlog.get_logger(__name__)

SAY_AFTER_MS = 10_000
"""A transaction that is open for a moment, or a broker that is restarted, is not worth a word."""
LONGEST_GAP_MS = 5_000
"""Between two looks: what is longer was no waiting."""


class OffsetReader(Protocol):
    """As much of Admin and ClusterReader as is asked here."""

    def list_offsets(self, partitions: Iterable[TopicPartition], kind: OffsetKind) -> dict[TopicPartition, int]: ...


class Reading(NamedTuple):
    """How far a partition was read, and how far it has to be."""

    position: int
    end: int


class Cause(NamedTuple):
    name: str
    """For the metric."""
    fact: str
    hint: str


@dataclass
class _Stall:
    position: int
    waited_ms: int = 0
    is_said: bool = False


class StallWatch:
    """`cluster` has to answer soon, or fail: whoever looks is held up by it. `now_ms` reads a clock that is never set."""

    def __init__(
        self,
        kind: str,
        now_ms: Callable[[], int],
        cluster: OffsetReader,
        troubles: ReadTroubles,
        *,
        timeout_ms: int,
        count_stall: CountStall = count_nothing,
    ) -> None:
        self._kind = kind
        self._now_ms = now_ms
        self._cluster = cluster
        self._troubles = troubles
        self._timeout_ms = timeout_ms
        self._say_after_ms = min(SAY_AFTER_MS, timeout_ms // 2)
        self._count_stall = count_stall
        self._stalls: dict[TopicPartition, _Stall] = {}
        self._looked_at_ms = now_ms()

    def restart(self) -> None:
        """Nothing is read on purpose: the clocks begin again."""
        self._stalls.clear()

    def look(self, reading: Mapping[TopicPartition, Reading]) -> list[PartitionUnreadableError]:
        """`reading` has all partitions that are not at their end yet. Returns those that have given nothing for too long."""
        now_ms = self._now_ms()
        passed_ms = min(now_ms - self._looked_at_ms, LONGEST_GAP_MS)
        self._looked_at_ms = now_ms
        self._stalls = {p: self._stall_of(p, at.position, passed_ms) for p, at in reading.items()}
        overdue = [p for p, stall in self._stalls.items() if stall.waited_ms >= self._timeout_ms]
        to_say = [p for p, stall in self._stalls.items() if stall.waited_ms >= self._say_after_ms and not stall.is_said]
        if not overdue and not to_say:
            return []
        causes = self._causes({p: reading[p] for p in {*overdue, *to_say}})
        for partition in to_say:
            self._say(partition, reading[partition], causes[partition])
        return [self._error(partition, reading[partition], causes[partition]) for partition in overdue]

    def _stall_of(self, partition: TopicPartition, position: int, passed_ms: int) -> _Stall:
        known = self._stalls.get(partition)
        if known is None or known.position != position:
            if known is not None and known.is_said:
                log.info("partition is read on", reads=self._kind, partition=str(partition), position=position)
            return _Stall(position)
        known.waited_ms += passed_ms
        return known

    def _say(self, partition: TopicPartition, at: Reading, cause: Cause) -> None:
        self._stalls[partition].is_said = True
        if self._troubles.why(partition, at.position) is not None:
            return  # said and counted when the consumer told it
        self._count_stall(partition.topic, cause.name)
        log.warning(
            "partition gives nothing more",
            reads=self._kind,
            partition=str(partition),
            position=at.position,
            end=at.end,
            cause=cause.fact,
            timeout_ms=self._timeout_ms,
        )

    def _error(self, partition: TopicPartition, at: Reading, cause: Cause) -> PartitionUnreadableError:
        return PartitionUnreadableError(
            self._kind,
            partition,
            position=at.position,
            end=at.end,
            waited_ms=self._stalls[partition].waited_ms,
            cause=cause.fact,
            hint=cause.hint,
        )

    def _causes(self, reading: Mapping[TopicPartition, Reading]) -> dict[TopicPartition, Cause]:
        told = {p: self._troubles.why(p, at.position) for p, at in reading.items()}
        causes = {p: Cause("told by the client", *why) for p, why in told.items() if why is not None}
        return causes | self._found({p: at for p, at in reading.items() if p not in causes})

    def _found(self, reading: Mapping[TopicPartition, Reading]) -> dict[TopicPartition, Cause]:
        """Of those that the consumer has said nothing about. One question for all, so that it takes its time once."""
        if not reading:
            return {}
        try:
            stable = self._cluster.list_offsets(reading, OffsetKind.LAST_STABLE)
        except BrokerUnavailableError as error:
            away = Cause("broker away", f"the broker does not answer ({error.fact})", "check that the brokers run")
            return dict.fromkeys(reading, away)
        except KafkaClientError as error:
            refused = Cause(error.code, error.fact, error.hint or "check the topic")
            return dict.fromkeys(reading, refused)
        return {p: _cause_by(stable[p], at.end) for p, at in reading.items()}


def _cause_by(last_stable: int, end: int) -> Cause:
    if last_stable < end:
        return Cause(
            "open transaction",
            f"a transaction has been open since offset {last_stable}",
            "kafka-transactions.sh describe-producers names its producer, and abort ends it; task.timeout.ms is how long it is "
            "waited for",
        )
    return Cause(
        "no records",
        "the broker gives no records, and no transaction is open",
        "check the broker that leads the partition",
    )
