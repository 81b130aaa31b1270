"""The users' code of random topologies: functions, processors, handlers, an extractor. What they do depends on their arguments.

All of them write down what they were called with: two executions have to agree on that, too. Some raise.
"""

from __future__ import annotations

from typing import Any

import streamfleet as sf
from streamfleet.errors import TaskInterruptedError


class Boom(Exception):
    pass


class Unserializable:
    def __repr__(self) -> str:
        return "unserializable"


class Undecided:
    """A truth that nobody knows."""

    def __bool__(self) -> bool:
        raise Boom("undecided")


ERRORS = (Boom, Boom, Boom, StopIteration, MemoryError, TaskInterruptedError, KeyError)


class Functions:
    """The users' functions of one case. `n` says which of them; results depend on nothing but arguments and `n`."""

    def __init__(self, calls: list[Any]) -> None:
        self._calls = calls

    def noted(self, what: str, n: int, *arguments: Any) -> int:
        """A small number from what the function was called with. Those with number 7 raise."""
        self._calls.append((what, *map(repr, arguments)))
        shown = sum(map(len, map(repr, arguments)))
        if n == 7 and shown % 4 == 0:
            raise ERRORS[shown % len(ERRORS)](f"{what} {arguments!r}")
        return (shown + n) % 5

    def predicate(self, n):
        def predicate(k, v):
            found = self.noted("predicate", n, k, v)
            return Undecided() if n == 8 and found == 0 else found % 2

        return predicate

    def pair(self, n):
        def pair(k, v):
            found = self.noted("pair", n, k, v)
            return "no pair" if n == 5 and found == 0 else (f"{k}{found}"[-2:], f"{v}{found}"[-6:])

        return pair

    def pairs(self, n):
        return lambda k, v: [
            ("ab"[i % 2], f"{v}{i}"[-6:]) if (n, i) != (6, 2) else None for i in range(self.noted("pairs", n, k, v))
        ]

    def value(self, n):
        return lambda v: f"{v}{self.noted('value', n, v)}"[-6:]

    def value_of_both(self, n):
        return lambda k, v: f"{k}{v}{self.noted('value', n, k, v)}"[-6:]

    def values(self, n):
        def values(v):
            found = self.noted("values", n, v)
            if n == 9 and found == 1:
                return None  # not iterable
            return self._each(v, found, fails=n in (5, 6))

        return values

    def _each(self, v, found, *, fails):
        for i in range(found):
            if fails and i == 2:
                raise Boom(f"value {i} of {v}")
            yield f"{v}{i}"[-6:]

    def key(self, n):
        return lambda k, v: "abc"[self.noted("key", n, k, v) % 3] if n != 6 else None

    def action(self, n):
        return lambda k, v: self.noted("action", n, k, v)

    def joined(self, n):
        return lambda left, right: f"{left}+{right}:{self.noted('joined', n, left, right)}"[-8:]

    def initial(self, n):
        return lambda: "" if n % 3 else str(self.noted("initial", n, "start"))

    def reduced(self, n):
        return lambda before, v: f"{v}{self.noted('reduced', n, before, v)}"[-6:]

    def aggregated(self, n):
        def aggregated(k, v, before):
            found = self.noted("aggregated", n, k, v, before)
            return None if n == 6 and found == 0 else f"{before}{v}"[-6:]

        return aggregated

    def foreign_key(self, n):
        return lambda v: [*"abc", None][self.noted("foreign", n, v) % 4]

    def group(self, n):
        return lambda k, v: ("abc"[self.noted("group", n, k, v) % 3], v)

    def bad_value(self, n):
        return lambda v: Unserializable() if self.noted("bad", n, v) == n % 5 else v

    def topic(self, n):
        return lambda k, v, context: f"chosen-{self.noted('topic', n, k, v, context.offset) % 2}" if n != 6 else ""

    def partitions(self, n):
        """One partition, several, none, any, and one that is not there."""
        choices = (0, [0], [], None, 5)
        return lambda topic, k, v, count: choices[self.noted("partitions", n, topic, k, v, count)]


class Acting(sf.Processor):
    """A processor that does what its number says: forwards, forwards changed, stores, punctuates, fails, catches."""

    def __init__(self, functions, n, children=(), store=None):
        self._functions, self._n, self._children, self._store_name = functions, n, children, store

    def init(self, context):
        super().init(context)
        self._kept = None
        self._schedule = None
        if self._store_name is not None:
            self._store = context.get_state_store(self._store_name)
        if self._n in (1, 6, 7):
            self._schedule = context.schedule(10, sf.PunctuationType.STREAM_TIME, self._punctuate)
        if self._n in (2, 9):
            self._schedule = context.schedule(5, sf.PunctuationType.WALL_CLOCK_TIME, self._punctuate)
        if self._n == 8:
            try:
                context.forward(sf.Record("i", "init", 7))
            except sf.StreamsError as error:
                self._functions.noted("refused", 0, str(error))

    def _punctuate(self, now):
        found = self._functions.noted("punctuate", self._n, now, self._kept, self.context.record_metadata())
        if self._n == 6 and found == 0:
            raise Boom("punctuator")
        if self._n == 9:
            self._schedule.cancel()
            self.context.commit()
        self.context.forward(sf.Record("p", str(self._kept), now, (("at", str(now).encode()),)))

    def process(self, record):
        context, n = self.context, self._n
        metadata = context.record_metadata()
        found = self._functions.noted("process", n, record, metadata, context.current_stream_time_ms())
        self._kept = record.value
        if self._store_name is not None and record.key is not None:
            seen = self._store.get(record.key)
            self._store.put(record.key, f"{seen}{record.value}"[-6:])
            record = record.with_value(f"{record.value}{seen}"[-6:])
        if n == 3:
            context.forward(record.with_timestamp(record.timestamp + found))
            context.forward(record.with_headers((*record.headers, ("n", b"3"))).with_key("c"))
        elif n in (4, 10, 11):
            self._forward_and_catch(record)
        elif self._children:
            context.forward(record, self._children[found % len(self._children)])
            context.forward(record.with_key("b"))
        else:
            context.forward(record)
        self._functions.noted("processed", 0, context.record_metadata())

    def _forward_and_catch(self, record):
        try:
            self.context.forward(record)
        except Exception as error:
            self._functions.noted("caught", 0, str(error))
            if self._n == 10:
                raise
            if self._n == 11:
                raise Boom("what follows failed") from error

    def close(self):
        self._functions.noted("close", 0, self._n)
        if self._n == 5:
            self.context.forward(sf.Record("c", "close", 1))


class ActingOnValues(sf.FixedKeyProcessor):
    def __init__(self, functions, n):
        self._functions, self._n = functions, n

    def init(self, context):
        super().init(context)
        self._last = None
        if self._n == 3:
            context.schedule(10, sf.PunctuationType.STREAM_TIME, self._punctuate)

    def _punctuate(self, now):
        self._functions.noted("punctuate values", self._n, now, self._last)
        if self._last is not None:
            self.context.forward(self._last)

    def process(self, record):
        found = self._functions.noted("process_values", self._n, record)
        self._last = record
        for i in range(found % 3):
            self.context.forward(record.with_value(f"{record.value}{i}").with_timestamp(record.timestamp + i))
        if self._n == 6 and found == 0:
            self.context.forward(sf.FixedKeyRecord("other", "v", record.timestamp))


class Transforming(sf.ValueTransformer):
    def __init__(self, functions, n):
        self._functions, self._n = functions, n

    def transform(self, key, value):
        return f"{value}{self._functions.noted('transform', self._n, key, value)}"[-6:]


class Updating(sf.Processor):
    """Feeds a global store."""

    def __init__(self, functions, store):
        self._functions, self._name = functions, store

    def init(self, context):
        super().init(context)
        self._store = context.get_state_store(self._name)

    def process(self, record):
        self._functions.noted("update", 0, record)
        if record.key is not None:
            self._store.put(record.key, record.value)


class Looking(sf.Processor):
    """Reads a global store."""

    def __init__(self, functions, n, store):
        self._functions, self._n, self._name = functions, n, store

    def init(self, context):
        super().init(context)
        self._store = context.get_state_store(self._name)

    def process(self, record):
        self._functions.noted("look", self._n, record)
        found = None if record.key is None else self._store.get(record.key)
        self.context.forward(record.with_value(f"{record.value}{found}"[-6:]))


class Choosing(sf.ProcessingHandler, sf.ProductionHandler):
    """Answers by what it is told."""

    def __init__(self, functions):
        self._functions = functions

    def handle(self, context, record, error):
        found = self._functions.noted("handle", 0, *self._told(context), record, str(error))
        if found == 4:
            raise Boom("handler")
        answer = sf.HandlerResponse.FAIL if found == 3 else sf.HandlerResponse.CONTINUE
        return sf.HandlerResult(answer, sf.dead_letter(context, error)) if found % 2 else answer

    def handle_serialization_error(self, context, record, error, origin):
        found = self._functions.noted("serialization", 0, *self._told(context), record, str(error), origin)
        return sf.HandlerResponse.FAIL if found == 0 else sf.HandlerResponse.CONTINUE

    def _told(self, context):
        return context.operator, context.topic, context.offset, context.timestamp, context.headers, context.raw_value


class Extracting(sf.TimestampExtractor):
    def __init__(self, functions):
        self._functions = functions

    def extract(self, record, partition_time):
        found = self._functions.noted("extract", 0, record, partition_time)
        if found == 4 and record.value == "zz":
            raise Boom("extractor")
        return -1 if found == 3 and record.value == "y" else record.timestamp


class Passing(sf.Processor):
    def __init__(self, inner):
        self._inner = inner

    def init(self, context):
        self._inner.init(context)

    def process(self, record):
        self._inner.process(record)

    def close(self):
        self._inner.close()


class PassingOn(sf.ProcessorWrapper):
    """Wraps every second processor, in one that only passes on."""

    def wrap(self, name, supplier):
        if len(name) % 2 or isinstance(supplier(), sf.FixedKeyProcessor):
            return supplier
        return lambda: Passing(supplier())
