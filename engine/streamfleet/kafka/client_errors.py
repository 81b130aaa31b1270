"""What the data-plane clients raise, named by what the catcher should do next.

    StreamsError
    ├── KafkaClientError                   a call to the broker failed; `code` is Kafka's name for why
    │   ├── BrokerUnavailableError         no answer until the deadline: nothing was lost, ask again (also a TimeoutError)
    │   ├── AccessDeniedError              an ACL is missing: grant it and restart
    │   ├── CredentialsRefusedError        user, password or certificate is wrong: fix the settings and restart
    │   ├── RecordRefusedError             this record can never be sent: a handler may leave it out
    │   ├── TransactionAbortRequiredError  abort, rewind, go on with a new producer
    │   └── ProducerLostError              close the producer, make a new one, rewind to the committed offsets
    │       ├── FencedProducerError        ... and heartbeat: a peer, a twin or a time-out took the transactional id
    │       └── UnknownTransactionOutcomeError  ... because nobody knows whether the transaction was committed
    └── TopicsNotReadyError                topics are not as the app needs them: somebody has to change something
        ├── MissingSourceTopicError        create the topics it names
        ├── SourceTopicChangedError        an input topic has grown, or was made anew, since the app was started
        ├── InternalTopicLostError         an internal topic was deleted, and with it state that nothing else has
        ├── InputGapError                  records of an input were deleted before they were processed
        ├── PartitionUnreadableError       a partition gives nothing more: it says why, and what to do
        ├── PartitionCountError            an internal topic has another number of partitions than its tasks
        └── TopicSettingsError             an internal topic would lose data by its own settings

The group client's errors are in errors.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from streamfleet.errors import StreamsError, TaskInterruptedError
from streamfleet.ids import TopicPartition


class KafkaClientError(StreamsError):
    """A client call failed. `code` is the name Kafka or librdkafka has for the reason."""

    def __init__(self, fact: str, *, code: str, hint: str | None = None) -> None:
        super().__init__(fact, hint=hint)
        self.code = code


class BrokerUnavailableError(KafkaClientError, TaskInterruptedError, TimeoutError):
    """The cluster did not answer in time, or cannot serve the request at the moment."""


class AccessDeniedError(KafkaClientError):
    """The broker knows who we are and does not let us."""


class CredentialsRefusedError(KafkaClientError):
    """The broker does not believe who we are, or we do not believe who it is."""


class RecordRefusedError(KafkaClientError):
    """A record the client or the broker will never accept: too large, a time it cannot have, a partition that is not there."""


class TransactionAbortRequiredError(KafkaClientError, TaskInterruptedError):
    """A record of the transaction was refused by the broker; the whole transaction can only be aborted."""


class ProducerLostError(KafkaClientError, TaskInterruptedError):
    """The producer must not be used again."""


class FencedProducerError(ProducerLostError):
    """The transactional id has a newer owner, or the coordinator ended the transaction by time-out."""


class UnknownTransactionOutcomeError(ProducerLostError):
    """The end of a transaction was asked for, and no answer came."""


class TopicsNotReadyError(StreamsError):
    """The app cannot run on the topics as they are."""


class MissingSourceTopicError(TopicsNotReadyError):
    """Topics the app reads do not exist."""

    def __init__(self, topics: Sequence[str]) -> None:
        super().__init__(
            f"source topics do not exist: {', '.join(topics)}",
            hint="create them; input topics are never created by the app",
        )
        self.topics = tuple(topics)


class SourceTopicChangedError(TopicsNotReadyError):
    """An input topic is not the one, or not of the size, that the tasks were made for."""


class InternalTopicLostError(TopicsNotReadyError):
    """A changelog or repartition topic is gone, or is another one under the same name."""


class InputGapError(TopicsNotReadyError):
    """Offsets from `first` up to, not including, `behind` were never processed and are gone."""

    def __init__(self, partition: TopicPartition, first: int, behind: int) -> None:
        super().__init__(
            f"input {partition} has lost the offsets {first} to {behind - 1}: they were deleted before they were processed"
            if first < behind
            else f"input {partition} ends at offset {behind}, but {first} was to be processed next: the topic was truncated",
            hint="set the group's offset for this partition (streamfleet worker reset, or Kafka's tools), or give its source "
            "an offset_reset to go on from there by itself",
        )
        self.partition = partition
        self.first = first
        self.behind = behind


class PartitionUnreadableError(TopicsNotReadyError):
    """More is there of a partition, and cannot be read; `waited_ms` says for how long. `end` is None where nobody has said it."""

    def __init__(
        self,
        kind: str,
        partition: TopicPartition,
        *,
        position: int,
        end: int | None,
        waited_ms: int,
        cause: str,
        hint: str,
    ) -> None:
        ends = "" if end is None else f" of {end}"
        waited = f", for {waited_ms} ms" if waited_ms else ""
        super().__init__(
            f"{kind} {partition} gives nothing from offset {position}{ends} on{waited}: {cause}", hint=hint
        )
        self.partition = partition
        self.position = position
        self.end = end
        self.cause = cause


class PartitionCountError(TopicsNotReadyError):
    """An internal topic exists with another number of partitions than the topology needs."""

    def __init__(self, topic: str, *, actual: int, expected: int) -> None:
        super().__init__(
            f"internal topic {topic} has {actual} partitions, but the app needs {expected}",
            hint="input topics have changed their partition count: reset the app, or give it a new application.id",
        )
        self.topic = topic
        self.actual = actual
        self.expected = expected


class TopicSettingsError(TopicsNotReadyError):
    """An internal topic has settings under which Kafka deletes what the app still needs."""

    def __init__(self, topic: str, setting: str, *, actual: str, expected: str) -> None:
        super().__init__(
            f"internal topic {topic} would lose data: its {setting} is {actual}, the app needs {expected}",
            hint=f"set {setting} of the topic back to {expected}, or set topic.{setting} of the app if it is meant",
        )
        self.topic = topic
        self.setting = setting
        self.actual = actual
        self.expected = expected
