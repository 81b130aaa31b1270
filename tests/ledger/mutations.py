"""Engine defects to be switched on in a worker: the harness must find each. Applied by worker.py, before the app starts, to the
seams between the engine's parts; the engine itself knows nothing of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, cast

import structlog
from confluent_kafka import KafkaError
from tests.ledger.failpoint_actions import ActingFailpoints

from streamfleet.config import StreamsConfig
from streamfleet.ids import TaskId, TopicPartition
from streamfleet.kafka.client_settings import ClientSettings
from streamfleet.kafka.group_messages import ConsumerGroupMetadata
from streamfleet.kafka.membership import Membership
from streamfleet.kafka.producer import PlainProducer
from streamfleet.kafka.transaction_client import TransactionClient
from streamfleet.kafka.transactional_producer import KafkaTransactionalProducer
from streamfleet.ports import ProducerIdentity
from streamfleet.records import ProducerRecord
from streamfleet.task.offsets import CommittedOffset
from streamfleet.task.stream_task import StreamTask
from streamfleet.thread.member_offsets import MemberOffsets
from streamfleet.thread.task_manager import TaskManager

log = structlog.get_logger(__name__)


def offsets_outside_transaction() -> None:
    """Offsets are committed at once, by a request of their own, before the transaction is."""

    def commit_at_once(self: MemberOffsets, producer: Any, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        self.commit(offsets)

    MemberOffsets.commit_in_transaction = commit_at_once  # type: ignore[method-assign]
    MemberOffsets.end_transaction = lambda self, producer, *, commit: None  # type: ignore[method-assign]


def restore_uncommitted() -> None:
    """A restore reads what was aborted, too."""
    original = ClientSettings.consumer

    def consumer(self: ClientSettings, role: Any, **options: Any) -> dict[str, Any]:
        settings = original(self, role, **options)
        return settings | {"isolation.level": "read_uncommitted"} if role == "restore" else settings

    ClientSettings.consumer = consumer  # type: ignore[method-assign]


def generation_unchecked() -> None:
    """Offsets are committed as nobody, which the broker lets pass in any generation.

    A dead owner's transactional id is not fenced either: that is a second guard for the same case, and would hide that the
    first is missing.
    """
    original = TransactionClient.add_offsets

    def add_offsets(self: TransactionClient, producer: Any, metadata: ConsumerGroupMetadata, *rest: Any) -> None:
        original(self, producer, ConsumerGroupMetadata(metadata.group_id), *rest)

    TransactionClient.add_offsets = add_offsets  # type: ignore[method-assign,assignment]
    Membership.fence = lambda self, transactional_id, timeout_ms: None  # type: ignore[method-assign]


def stores_before_commit() -> None:
    """The dirty buffers become rows of the stores before the transaction is committed."""
    original = StreamTask.prepare_commit

    def prepare_commit(self: StreamTask) -> dict[TopicPartition, CommittedOffset]:
        offsets = original(self)
        assert self._state is not None
        self._state.commit({})
        return offsets

    StreamTask.prepare_commit = prepare_commit  # type: ignore[method-assign]


def producer_reused() -> None:
    """A producer whose transaction has an unknown outcome is used for the next one."""
    original = KafkaTransactionalProducer._translate_end

    def translate_end(self: KafkaTransactionalProducer, error: KafkaError, doing: str) -> Exception:
        state = self._state
        answer = original(self, error, doing)
        self._state = state
        return answer

    KafkaTransactionalProducer._translate_end = translate_end  # type: ignore[method-assign]


def commits_withheld() -> None:
    """The commit interval is ignored: offsets are committed now and then."""
    _commit_every(10_000)


def _commit_every(interval_ms: int) -> None:
    StreamsConfig.effective_commit_interval_ms = property(lambda self: interval_ms)  # type: ignore[assignment,method-assign]


def resumes_before_the_commit() -> None:
    """A task begins some records before the committed offset."""
    original = MemberOffsets.committed

    def committed(self: MemberOffsets, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, CommittedOffset]:
        found = original(self, partitions)
        return {p: replace(each, offset=max(0, each.offset - 3)) for p, each in found.items()}

    MemberOffsets.committed = committed  # type: ignore[method-assign]


def leaves_without_commit() -> None:
    """Of tasks that are given up the results are sent, but not the offsets. Commits come late enough for them to have some."""

    def release(self: TaskManager, task_ids: Iterable[TaskId]) -> None:
        cast("Any", self._commit.producer).flush(5000)
        for task in [self._tasks[task_id] for task_id in task_ids]:
            self._forget(task)
            self._discard(task)
            self._close(task)

    TaskManager.release = release  # type: ignore[method-assign]
    _commit_every(1000)


def repartition_read_again() -> None:
    """Tasks begin some records before the committed offset, but only in topics of the app's own."""
    _begin_elsewhere(-3)


def repartition_skipped() -> None:
    """Tasks begin some records behind the committed offset, but only in topics of the app's own."""
    _begin_elsewhere(3)


def _begin_elsewhere(by: int) -> None:
    original = MemberOffsets.committed

    def committed(self: MemberOffsets, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, CommittedOffset]:
        found = original(self, partitions)
        return {
            p: replace(each, offset=max(0, each.offset + by)) if _is_repartition(p.topic) else each
            for p, each in found.items()
        }

    MemberOffsets.committed = committed  # type: ignore[method-assign]


def repartition_forwarded_twice() -> None:
    """Every hundredth record that goes to another sub-topology is sent twice."""
    _forward_hundredth(times=2)


def repartition_not_forwarded() -> None:
    """Every hundredth record that goes to another sub-topology is not sent."""
    _forward_hundredth(times=0)


def _forward_hundredth(times: int) -> None:
    original = PlainProducer.send
    number = itertools.count(1)

    def send(self: PlainProducer, record: ProducerRecord) -> None:
        is_hundredth = _is_repartition(record.topic) and next(number) % 100 == 0
        for _ in range(times if is_hundredth else 1):
            original(self, record)

    PlainProducer.send = send  # type: ignore[method-assign]


def _is_repartition(topic: str) -> bool:
    return topic.endswith("-repartition")


def absence_unnoticed() -> None:
    """A process that stood still goes on writing what it had in hand."""
    original = PlainProducer.__init__

    def patient(self: PlainProducer, settings: Mapping[str, Any], *rest: Any, **options: Any) -> None:
        options.pop("tenure", None)
        original(self, {**settings, "message.timeout.ms": 300_000}, *rest, **options)

    PlainProducer.__init__ = patient  # type: ignore[method-assign]


def promoted_without_its_tail() -> None:
    """A copy becomes the active task as it is, whatever its changelogs got since it was last read."""
    original = TaskManager._start

    def start(self: TaskManager, task_id: TaskId) -> None:
        engines = self.standbys.promote(task_id)
        if engines is None:
            original(self, task_id)
            return
        task = self._tasks[task_id] = self._open(task_id, engines)
        self._restored.append(task)

    TaskManager._start = start  # type: ignore[method-assign]


MUTATIONS: dict[str, Callable[[], None]] = {
    mutation.__name__: mutation
    for mutation in (
        offsets_outside_transaction,
        restore_uncommitted,
        generation_unchecked,
        stores_before_commit,
        producer_reused,
        commits_withheld,
        resumes_before_the_commit,
        leaves_without_commit,
        repartition_read_again,
        repartition_skipped,
        repartition_forwarded_twice,
        repartition_not_forwarded,
        absence_unnoticed,
        promoted_without_its_tail,
    )
}


def install_late_end(failpoints: ActingFailpoints) -> None:
    """Not a defect but a fault: see the actions `late_end` and `arrive`. The request is sent by a client of the engine's own."""
    original_end = KafkaTransactionalProducer._end
    clients: list[TransactionClient] = []
    original_client = TransactionClient.__init__

    def keep_client(self: TransactionClient, *arguments: Any, **options: Any) -> None:
        original_client(self, *arguments, **options)
        clients.append(self)

    def end(self: KafkaTransactionalProducer, doing: str, call: Any, timeout_ms: int) -> None:
        if not failpoints.end_is_late or doing != "committing the transaction":
            original_end(self, doing, call, timeout_ms)
            return
        failpoints.end_is_late = False
        lines = TransactionClient("late", clients[0]._line_for, clients[0]._clock)
        failpoints.delayed_ends.append(partial(_send_end, lines, self.identity))
        raise self._translate_end(KafkaError(KafkaError._TIMED_OUT), doing)

    TransactionClient.__init__ = keep_client  # type: ignore[method-assign]
    KafkaTransactionalProducer._end = end  # type: ignore[method-assign]


def _send_end(client: TransactionClient, identity: ProducerIdentity) -> None:
    try:
        client.end(identity, commit=True, timeout_ms=5000)
        outcome = "accepted"
    except Exception as error:
        outcome = f"refused: {error}"
    log.warning("late end of a transaction", outcome=outcome)
