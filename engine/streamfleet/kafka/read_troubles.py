"""ReadTroubles: what a consumer says besides records and lost offsets. Each trouble is said once, counted, and an error where it
cannot get better by itself, or lasts for too long.

One for every consumer; told by StreamThread, StateUpdater and GlobalUpdater. The client tells a missing permission once, and all
else with every fetch, twice a second: so what was not told for a while is over. A broker that is away is no trouble of a partition.
Lost offsets (OffsetOutOfRange) are the owner's affair, but for those that follow on a damaged record.

A record with a wrong checksum is an error at once. librdkafka (2.16) loses its place behind it: it takes the middle of another
batch for the next one, goes on at whatever offset it finds there, and may even end the process. So nothing that it tells of the
partition afterwards can be believed, least of all a lost offset: state would be wiped for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from streamfleet.ids import TopicPartition
from streamfleet.kafka.client_errors import AccessDeniedError, PartitionUnreadableError
from streamfleet.ports import ClientTrouble, PartitionUnavailable

log = structlog.get_logger(__name__)

CountStall = Callable[[str, str], None]
"""count(topic, cause): called once for every stall and cause."""

QUIET_MS = 30_000
"""A trouble that was not told for so long is over."""
REMINDER_MS = 60_000
"""How soon a trouble of the connection is said again."""
_DENIED = "AUTHORIZATION_FAILED"
_DAMAGED = frozenset({"_BAD_MSG", "INVALID_MSG"})


def count_nothing(_topic: str, _cause: str) -> None:
    pass


@dataclass
class _Trouble:
    """Nothing was read from `position` on since the trouble was told first."""

    position: int
    code: str
    detail: str
    told_at_ms: int
    waited_ms: int = 0
    said: set[str] = field(default_factory=set)


class ReadTroubles:
    """`kind` is what the partitions are called: input, changelog, global topic. `now_ms` reads a clock that is never set.
    `timeout_ms` None: whoever asks has a clock of its own for partitions that give nothing.
    """

    def __init__(
        self,
        kind: str,
        now_ms: Callable[[], int],
        *,
        timeout_ms: int | None,
        count_stall: CountStall = count_nothing,
    ) -> None:
        self._kind = kind
        self._now_ms = now_ms
        self._timeout_ms = timeout_ms
        self._count_stall = count_stall
        self._troubles: dict[TopicPartition, _Trouble] = {}
        self._client_said: dict[str, int] = {}

    def hear_client(self, event: ClientTrouble) -> None:
        """The connection; the client goes on trying."""
        now_ms = self._now_ms()
        said_at_ms = self._client_said.get(event.code)
        if said_at_ms is None or now_ms - said_at_ms >= REMINDER_MS:
            self._client_said[event.code] = now_ms
            log.warning("consumer trouble", reads=self._kind, code=event.code, detail=event.detail)

    def hear(self, event: PartitionUnavailable, position: int, end: int | None) -> None:
        """`position` is the offset that is to be read next, `end` where the partition ends, if that is known.

        Raises AccessDeniedError, and for a damaged record PartitionUnreadableError, at once; this one, too, when nothing was read
        for the time-out.
        """
        if event.code.endswith(_DENIED):
            self._count_stall(event.partition.topic, event.code)
            raise AccessDeniedError(
                f"{self._kind} {event.partition} may not be read: {event.detail} ({event.code})",
                code=event.code,
                hint=f"grant READ on topic {event.partition.topic} to the user of this app, and start it again",
            )
        trouble = self._noted(event, position)
        if event.code not in trouble.said:
            trouble.said.add(event.code)
            self._count_stall(event.partition.topic, event.code)
            log.warning(
                "partition cannot be read",
                reads=self._kind,
                partition=str(event.partition),
                position=position,
                code=event.code,
                detail=event.detail,
            )
        is_overdue = self._timeout_ms is not None and trouble.waited_ms >= self._timeout_ms
        if is_overdue or event.code in _DAMAGED:
            raise PartitionUnreadableError(
                self._kind,
                event.partition,
                position=position,
                end=end,
                waited_ms=trouble.waited_ms,
                cause=_cause(trouble),
                hint=_hint(trouble.code),
            )

    def _noted(self, event: PartitionUnavailable, position: int) -> _Trouble:
        now_ms = self._now_ms()
        known = self._current(event.partition, position, now_ms)
        if known is None:
            known = self._troubles[event.partition] = _Trouble(position, event.code, event.detail, now_ms)
        known.waited_ms += now_ms - known.told_at_ms
        known.code, known.detail, known.told_at_ms = event.code, event.detail, now_ms
        return known

    def _current(self, partition: TopicPartition, position: int, now_ms: int) -> _Trouble | None:
        known = self._troubles.get(partition)
        if known is None or known.position != position or now_ms - known.told_at_ms >= QUIET_MS:
            return None
        return known

    def why(self, partition: TopicPartition, position: int) -> tuple[str, str] | None:
        """What was told lately of a partition that gives nothing from there on, and what to do about it."""
        trouble = self._current(partition, position, self._now_ms())
        return None if trouble is None else (_cause(trouble), _hint(trouble.code))


def _cause(trouble: _Trouble) -> str:
    return f"{trouble.detail} ({trouble.code})"


def _hint(code: str) -> str:
    if code in _DAMAGED:
        return (
            "a record there is damaged on the broker's disk: let a sound replica lead the partition, or delete the records up to "
            "it (kafka-delete-records.sh)"
        )
    return "check the topic, and the broker that leads the partition"
