"""The named processors and transformers of the scenario format: what each does with a record.

Written once for records of both kinds: `Processor` and `FixedKeyProcessor` only differ in what they let a processor
change. `processors` puts a behaviour on top of the engine's base class and makes the supplier.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.conformance import store_script
from tests.conformance.kit import Boom, Json, compile_expression, text

import streamfleet as sf

_PUNCTUATION = {
    "stream_time": sf.PunctuationType.STREAM_TIME,
    "wall_clock": sf.PunctuationType.WALL_CLOCK_TIME,
}
_APPLY_VARIABLES = ("k", "v", "ts", "stream_time", "wall_clock", "topic", "partition", "offset")
_APPLY_VALUE_VARIABLES = ("k", "v", "ts")


@dataclass(frozen=True)
class StoreKinds:
    """Name of every store whose kind the file gives -> that kind, and which stores hold values with timestamps."""

    kinds: Mapping[str, str]
    timestamped: frozenset[str]

    @classmethod
    def of(cls, ops: list[dict[str, Json]]) -> StoreKinds:
        kinds: dict[str, str] = {}
        timestamped: set[str] = set()
        for op in ops:
            processor = op.get("processor")  # the op `connect` has a name there
            provided = processor.get("provides", ()) if isinstance(processor, dict) else ()
            for spec in (op.get("store"), *provided):
                if isinstance(spec, dict):
                    kinds[spec["name"]] = spec["kind"]
            materialized = op.get("materialized", {})
            # Whatever the supplier is, the DSL keeps a timestamp with each value (except in sessions).
            timestamped |= {materialized["store"]} if "store" in materialized else set()
            timestamped |= {materialized["supplier"]["name"]} if "supplier" in materialized else set()
        return cls(kinds, frozenset(timestamped | {n for n, k in kinds.items() if k.startswith("timestamped")}))


class Behaviour:
    """What a processor does with a record. `spec` is the scenario's object, `stores` what it says of its stores."""

    context: Any

    def __init__(self, spec: Mapping[str, Json], stores: StoreKinds) -> None:
        self.spec = spec
        self.stores = stores

    @property
    def store(self) -> Any:
        return self.context.get_state_store(self.spec["store"])

    def to_put(self, record: Any) -> Any:
        """The record's value as its store takes it."""
        if record.value is not None and self.spec["store"] in self.stores.timestamped:
            return sf.ValueAndTimestamp(record.value, record.timestamp)
        return record.value

    def count(self, key: Any) -> int | None:
        if key is None:
            return None
        count = (_stored(self.store.get(key)) or 0) + 1
        self.store.put(key, count)
        return int(count)

    def init(self, context: Any) -> None:
        self.context = context

    def close(self) -> None:
        """Nothing is held."""

    def schedule(self, punctuator: Callable[[int], None]) -> Any:
        kind = _PUNCTUATION[self.spec["type"]]
        if "start" in self.spec:
            return self.context.schedule(self.spec["interval"], kind, punctuator, start=self.spec["start"])
        return self.context.schedule(self.spec["interval"], kind, punctuator)


def _stored(found: Any) -> Any:
    return found.value if isinstance(found, sf.ValueAndTimestamp) else found


class Apply(Behaviour):
    def __init__(self, spec: Mapping[str, Json], stores: StoreKinds) -> None:
        super().__init__(spec, stores)
        self.function = compile_expression(spec["fn"], _APPLY_VARIABLES)

    def process(self, record: Any) -> None:
        origin = self.context.record_metadata()
        pairs = self.function(
            {
                "k": record.key,
                "v": record.value,
                "ts": record.timestamp,
                "stream_time": self.context.current_stream_time_ms(),
                "wall_clock": self.context.current_system_time_ms(),
                # Without an input record (in a punctuation) Java has a place of no topic and with the numbers -1.
                "topic": origin.topic if origin else None,
                "partition": origin.partition if origin else -1,
                "offset": origin.offset if origin else -1,
            }
        )
        for key, value in pairs:
            self.context.forward(record.with_key(key).with_value(value))


class ApplyToValue(Behaviour):
    def __init__(self, spec: Mapping[str, Json], stores: StoreKinds) -> None:
        super().__init__(spec, stores)
        self.function = compile_expression(spec["fn"], _APPLY_VALUE_VARIABLES)

    def process(self, record: Any) -> None:
        for value in self.function({"k": record.key, "v": record.value, "ts": record.timestamp}):
            self.context.forward(record.with_value(value))


class Route(Behaviour):
    def process(self, record: Any) -> None:
        child, _, rest = record.value.partition(":")
        self.context.forward(record.with_value(rest), None if child == "*" else child)


class Count(Behaviour):
    def process(self, record: Any) -> None:
        self.context.forward(record.with_value(self.count(record.key)))


class Dedup(Behaviour):
    def process(self, record: Any) -> None:
        if self.store.get(record.key) is None:
            self.store.put(record.key, self.to_put(record))
            self.context.forward(record)


class Put(Behaviour):
    def process(self, record: Any) -> None:
        self.store.put(record.key, self.to_put(record))


class Lookup(Behaviour):
    def process(self, record: Any) -> None:
        found = None if record.key is None else _stored(self.store.get(record.key))
        self.context.forward(record.with_value(f"{text(record.value)}/{text(found)}"))


class Buffer(Behaviour):
    def init(self, context: Any) -> None:
        super().init(context)
        self.schedule(self.flush)

    def process(self, record: Any) -> None:
        self.store.put(record.key, self.to_put(record))

    def flush(self, timestamp: int) -> None:
        with self.store.all() as entries:
            for key, found in entries:
                self.context.forward(sf.Record(key, _stored(found), timestamp))
                self.store.delete(key)


class Punctuate(Behaviour):
    def init(self, context: Any) -> None:
        super().init(context)
        self.records = 0
        self.calls = 0
        self.scheduled = self.schedule(self.punctuate)

    def process(self, record: Any) -> None:
        self.records += 1
        self.context.forward(record)

    def punctuate(self, timestamp: int) -> None:
        self.context.forward(sf.Record("punct", f"{self.spec['type']} {timestamp} {self.records}", timestamp))
        self.records = 0
        self.calls += 1
        if self.calls == self.spec.get("limit"):
            self.scheduled.cancel()


class Header(Behaviour):
    def process(self, record: Any) -> None:
        added = (self.spec["key"], self.spec["value"].encode())
        self.context.forward(record.with_headers((*record.headers, added)))


class WithTimestamp(Behaviour):
    def process(self, record: Any) -> None:
        self.context.forward(record.with_timestamp(record.timestamp + self.spec["plus"]))


class Commit(Behaviour):
    def process(self, record: Any) -> None:
        self.context.commit()
        self.context.forward(record)


class FailOn(Behaviour):
    def process(self, record: Any) -> None:
        if record.value == self.spec["value"]:
            raise Boom(f"boom {text(record.value)}")
        self.context.forward(record)


class StoreScript(Behaviour):
    def process(self, record: Any) -> None:
        kind = self.stores.kinds[self.spec["store"]]
        answer = store_script.run_command(kind, self.store, record.value, record.timestamp)
        self.context.forward(record.with_value(answer))


class ApplyTransformer(Behaviour):
    def __init__(self, spec: Mapping[str, Json], stores: StoreKinds) -> None:
        super().__init__(spec, stores)
        self.function = compile_expression(spec["fn"], ("k", "v"))

    def transform(self, key: Any, value: Any) -> Any:
        return self.function({"k": key, "v": value})


class CountTransformer(Behaviour):
    def transform(self, key: Any, value: Any) -> str:
        return f"{text(value)}#{text(self.count(key))}"
