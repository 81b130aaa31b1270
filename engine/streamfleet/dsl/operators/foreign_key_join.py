"""A table joined with another by a foreign key: rows of the primary table point to rows of the foreign one.

The two are partitioned by different keys, so they talk through two internal topics:

    primary side                                foreign side
    SubscriptionSend    -- registration -->     SubscriptionReceive, SubscriptionJoin
                                                ForeignTableJoin (its own updates)
    ResponseJoin        <-- response ------     both

A row subscribes to the foreign row it points to; the foreign side keeps subscriptions by foreign key, and answers with the foreign
value, when somebody subscribes and whenever the value changes. An answer carries the hash of the primary value that it is for; if
that has changed meanwhile, the answer is out of date, and a newer one is under way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from streamfleet.dsl.operators.table_join import OUT_OF_ORDER
from streamfleet.dsl.operators.table_view import AnyProcessor, TableView, internal, value_or_none
from streamfleet.murmur3 import hash128
from streamfleet.processor.api import ProcessorContext
from streamfleet.records import Change, Record, ValueAndTimestamp
from streamfleet.serdes.api import Serde, required, resolved
from streamfleet.serdes.plain import bytes as bytes_serde
from streamfleet.serdes.subscription import Instruction, Response, Subscription

ForeignKey = Callable[[Any, Any], Any]
"""f(key, value of the primary row) -> foreign key or None"""
Joiner = Callable[[Any, Any, Any], Any]
"""f(key, primary value, foreign value) -> result"""

_LENGTH_SIZE = 4


@dataclass(frozen=True)
class ForeignKeyJoin:
    """What all processors of one join share. Serdes are those of the tables; None: the configured default."""

    extractor: ForeignKey
    joiner: Joiner
    is_left: bool
    topic: str
    """Of the registration, without the application id: serdes see names made from it."""
    store: str
    """Of the subscriptions."""
    key_serde: Serde[Any] | None
    value_serde: Serde[Any] | None
    foreign_key_serde: Serde[Any] | None


class _Side(AnyProcessor):
    """A processor that knows how keys and values of the join become bytes."""

    def __init__(self, join: ForeignKeyJoin) -> None:
        self._join = join

    def init(self, context: ProcessorContext[Any, Any]) -> None:
        self.context = context
        config = internal(context).config
        prefix = f"{context.application_id}-{self._join.topic}"
        self._key_topic, self._foreign_key_topic, self._hash_topic = f"{prefix}-pk", f"{prefix}-fk", f"{prefix}-vh"
        owner = f"foreign-key join {internal(context).node_name}"
        join, key_default = self._join, config.default_key_serde
        self._key_serde = required(owner, "key", resolved(join.key_serde, key_default))
        self._foreign_key_serde = required(owner, "key", resolved(join.foreign_key_serde, key_default))
        self._value_serde = required(owner, "value", resolved(join.value_serde, config.default_value_serde))

    def _hash(self, value: Any) -> bytes | None:
        data = None if value is None else self._value_serde.serialize(self._hash_topic, value)
        return None if data is None else hash128(data)

    def _foreign_key_bytes(self, key: Any) -> bytes | None:
        return None if key is None else self._foreign_key_serde.serialize(self._foreign_key_topic, key)

    def _prefix(self, foreign_key: Any) -> bytes:
        """Of the subscriptions to one foreign key: length (4) | foreign key."""
        data = self._foreign_key_bytes(foreign_key) or b""
        return len(data).to_bytes(_LENGTH_SIZE, "big") + data


class SubscriptionSendOperator:
    def __init__(self, join: ForeignKeyJoin) -> None:
        self._join = join
        self.uses_versions = False

    def __call__(self) -> AnyProcessor:
        return _SubscriptionSend(self._join, uses_versions=self.uses_versions)


class _SubscriptionSend(_Side):
    """Turns updates of the primary table into subscriptions."""

    def __init__(self, join: ForeignKeyJoin, *, uses_versions: bool) -> None:
        super().__init__(join)
        self._uses_versions = uses_versions

    def process(self, record: Record[Any, Change[Any]]) -> None:
        change = record.value
        if self._uses_versions and not change.is_latest:
            internal(self.context).drop(OUT_OF_ORDER)
            return
        extractor = self._join.extractor
        old = None if change.old is None else extractor(record.key, change.old)
        new = None if change.new is None else extractor(record.key, change.new)
        if self._join.is_left:
            self._send_left(record, old, new)
        else:
            self._send_inner(record, old, new)

    def _send_left(self, record: Record[Any, Change[Any]], old: Any, new: Any) -> None:
        if record.value.old is None and record.value.new is None:
            return
        if old is not None and self._differ(old, new):
            self._send(record, old, Instruction.DELETE_AND_STAY_SILENT)
        self._send(record, new, Instruction.ANSWER_ALWAYS)

    def _send_inner(self, record: Record[Any, Change[Any]], old: Any, new: Any) -> None:
        if new is None:
            if record.value.new is not None:
                internal(self.context).drop("null foreign key")
            if old is not None:
                self._send(record, old, Instruction.DELETE_AND_ANSWER)
        elif old is not None and self._differ(old, new):
            self._send(record, old, Instruction.DELETE_AND_STAY_SILENT)
            # The former result must go away also if the new foreign row does not exist.
            self._send(record, new, Instruction.ANSWER_ALWAYS)
        else:
            self._send(record, new, Instruction.ANSWER_IF_THERE)

    def _differ(self, old: Any, new: Any) -> bool:
        return self._foreign_key_bytes(old) != self._foreign_key_bytes(new)

    def _send(self, record: Record[Any, Change[Any]], foreign_key: Any, instruction: Instruction) -> None:
        metadata = self.context.record_metadata()
        partition = self.context.task_id.partition if metadata is None else metadata.partition
        subscription = Subscription(self._hash(record.value.new), instruction, record.key, partition)
        self.context.forward(Record(foreign_key, subscription, record.timestamp, record.headers))


class SubscriptionReceiveOperator:
    def __init__(self, join: ForeignKeyJoin) -> None:
        self._join = join

    def __call__(self) -> AnyProcessor:
        return _SubscriptionReceive(self._join)


class _SubscriptionReceive(_Side):
    """Keeps subscriptions: length (4) | foreign key | primary key -> subscription."""

    def init(self, context: ProcessorContext[Any, Any]) -> None:
        super().init(context)
        self._store = context.get_state_store(self._join.store)

    def process(self, record: Record[Any, Subscription | None]) -> None:
        subscription = record.value
        if subscription is None:
            raise _not_ours("registration")
        if record.key is None and subscription.instruction is not Instruction.ANSWER_ALWAYS:
            internal(self.context).drop("null foreign key")
            return
        if record.key is not None:
            self._keep(record.key, subscription, record.timestamp)
        self.context.forward(record)

    def _keep(self, foreign_key: Any, subscription: Subscription, timestamp: int) -> None:
        primary_key = self._key_serde.serialize(self._key_topic, subscription.primary_key) or b""
        row = self._prefix(foreign_key) + primary_key
        deletes = (Instruction.DELETE_AND_ANSWER, Instruction.DELETE_AND_STAY_SILENT)
        if subscription.instruction in deletes:
            self._store.put(row, None)
        else:
            self._store.put(row, ValueAndTimestamp(subscription, timestamp))


class SubscriptionJoinOperator:
    """Answers a subscription."""

    def __init__(self, foreign: TableView) -> None:
        self._foreign = foreign

    def __call__(self) -> AnyProcessor:
        return _SubscriptionJoin(self._foreign)


class _SubscriptionJoin(AnyProcessor):
    def __init__(self, foreign: TableView) -> None:
        self._foreign = foreign.make()

    def init(self, context: ProcessorContext[Any, Any]) -> None:
        self.context = context
        self._foreign.init(internal(context))

    def process(self, record: Record[Any, Subscription]) -> None:
        subscription = record.value
        row = None if record.key is None else self._foreign.get(record.key)
        instruction = subscription.instruction
        if instruction is Instruction.DELETE_AND_STAY_SILENT:
            return
        if instruction is Instruction.ANSWER_IF_THERE and row is None:
            return
        value = None if instruction is Instruction.DELETE_AND_ANSWER else value_or_none(row)
        timestamp = record.timestamp if row is None else max(record.timestamp, row.timestamp)
        response = Response(subscription.hash, value, subscription.primary_partition)
        self.context.forward(Record(subscription.primary_key, response, timestamp, record.headers))

    def close(self) -> None:
        self._foreign.close()


class ForeignTableJoinOperator:
    def __init__(self, join: ForeignKeyJoin) -> None:
        self._join = join
        self.uses_versions = False

    def __call__(self) -> AnyProcessor:
        return _ForeignTableJoin(self._join, uses_versions=self.uses_versions)


class _ForeignTableJoin(_Side):
    """Tells everybody who has subscribed when a foreign row changes."""

    def __init__(self, join: ForeignKeyJoin, *, uses_versions: bool) -> None:
        super().__init__(join)
        self._uses_versions = uses_versions

    def init(self, context: ProcessorContext[Any, Any]) -> None:
        super().init(context)
        self._store = context.get_state_store(self._join.store)

    def process(self, record: Record[Any, Change[Any]]) -> None:
        if record.key is None:
            internal(self.context).drop("null key")
            return
        if self._uses_versions and not record.value.is_latest:
            internal(self.context).drop(OUT_OF_ORDER)
            return
        with self._store.prefix_scan(self._prefix(record.key), bytes_serde()) as rows:
            for _, row in rows:
                subscription: Subscription = row.value
                response = Response(subscription.hash, record.value.new, subscription.primary_partition)
                self.context.forward(record.with_key(subscription.primary_key).with_value(response))


class ResponseJoinOperator:
    def __init__(self, join: ForeignKeyJoin, primary: TableView) -> None:
        self._join = join
        self._primary = primary

    def __call__(self) -> AnyProcessor:
        return _ResponseJoin(self._join, self._primary)


class _ResponseJoin(_Side):
    """Joins answers with the primary rows they are for."""

    def __init__(self, join: ForeignKeyJoin, primary: TableView) -> None:
        super().__init__(join)
        self._primary = primary.make()

    def init(self, context: ProcessorContext[Any, Any]) -> None:
        super().init(context)
        self._primary.init(internal(context))

    def process(self, record: Record[Any, Response | None]) -> None:
        response = record.value
        if response is None:
            raise _not_ours("response")
        value = value_or_none(self._primary.get(record.key))
        if response.hash != self._hash(value):
            internal(self.context).drop("answer to a former value")
            return
        is_gone = response.value is None and (not self._join.is_left or value is None)
        joined = None if is_gone else self._join.joiner(record.key, value, response.value)
        self.context.forward(record.with_value(joined))

    def close(self) -> None:
        self._primary.close()


def _not_ours(topic: str) -> ValueError:
    return ValueError(
        f"a record without value is nothing that a foreign-key join sends to its {topic} topic; "
        "nobody but the app itself may write to its internal topics"
    )


def response_partition(_topic: str, _key: Any, response: Response, _num_partitions: int) -> int | None:
    """Back to the partition that the subscription came from: the primary table may be partitioned in a way of its own."""
    return response.primary_partition
