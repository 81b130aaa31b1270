"""What the engine adds to the users' functions, without a broker: `make bench`, or `python -m tests.bench.micro`.

Each figure is CPU time of this thread; the engine and a hand-written loop take turns, because a machine gets faster and slower: the
ratio is what to quote. The loop calls the same functions, serdes and producer, and nothing else of the engine. Batches have a
thousand records, as a StreamThread hands them over. Windows, sessions and joins follow, without a bar: micro_state.py.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import msgspec
from tests.bench import micro_state, page
from tests.bench.pretended_task import BATCH, Silent, commit, running

import streamfleet as sf
from streamfleet.compiler.program import InputRecord
from streamfleet.ids import TopicPartition
from streamfleet.records import ProducerRecord, RawRecord, RecordContext
from streamfleet.task.stream_task import StreamTask

KEYS = 1000
TEXT, NUMBER = sf.serdes.string(), sf.serdes.long()


class Order(msgspec.Struct, frozen=True):
    id: int
    customer: str
    amount: float
    item: str
    ts: int


class Priced(msgspec.Struct, frozen=True):
    id: int
    customer: str
    cents: int
    big: bool
    ts: int


ORDER, PRICED = sf.serdes.json(Order), sf.serdes.json(Priced)


@dataclass(frozen=True)
class Figure:
    """`loop` runs the same records by hand. The bar is a ratio to it, or microseconds of the engine."""

    title: str
    engine: Callable[[], None]
    loop: Callable[[], None]
    bar: float
    is_ratio: bool
    beside: str = "loop"


def double(value: int) -> int:
    return value * 2


def keep(_key: Any, value: int) -> bool:
    return value % 10 != 0


def pair(key: str, value: int) -> tuple[str, int]:
    return key, value + 1


def look(_key: Any, _value: Any) -> None:
    return None


def expensive(_key: Any, order: Order) -> bool:
    return order.amount >= 30


def price(order: Order) -> Priced:
    return Priced(order.id, order.customer, int(order.amount * 100 + 0.5), order.amount > 100, order.ts)


class PassOn(sf.Processor[str, int, str, int]):
    def process(self, record: sf.Record[str, int]) -> None:
        self.context.forward(record.with_value(record.value + 1))


def chain() -> sf.Topology:
    """Source, map, filter, map, peek, sink."""
    builder = sf.StreamsBuilder()
    stream = builder.stream("in", key_serde=TEXT, value_serde=NUMBER).map_values(double).filter(keep).map(pair)
    stream.peek(look).to("out", key_serde=TEXT, value_serde=NUMBER)
    return builder.build()


def processors() -> sf.Topology:
    """Source, four processors, sink."""
    topology = sf.Topology().add_source("0", "in", key_serde=TEXT, value_serde=NUMBER)
    for number in range(1, 5):
        topology.add_processor(str(number), PassOn, str(number - 1))
    return topology.add_sink("5", "out", "4", key_serde=TEXT, value_serde=NUMBER)


def json_to_json() -> sf.Topology:
    builder = sf.StreamsBuilder()
    orders = builder.stream("in", key_serde=TEXT, value_serde=ORDER).filter(expensive).map_values(price)
    orders.to("out", key_serde=TEXT, value_serde=PRICED)
    return builder.build()


def counts() -> sf.Topology:
    builder = sf.StreamsBuilder()
    builder.stream("in", key_serde=TEXT, value_serde=NUMBER).group_by_key().count(store="counts")
    return builder.build()


def numbers() -> list[InputRecord]:
    """Decoded, as a queue hands them to a program."""
    return [(RecordContext("in", 0, n, 1_000_000 + n), f"key-{n % KEYS:06d}", n) for n in range(BATCH)]


def raw_orders() -> list[RawRecord]:
    """About a hundred bytes each."""
    records = []
    for n in range(BATCH):
        order = Order(n, f"c{n % KEYS:06d}", 10 + n % 290 + 0.5, f"item-{n % 97}", 1_000_000 + n)
        raw = ORDER.serialize("in", order)
        records.append(RawRecord("in", 0, n, 1_000_000 + n, order.customer.encode(), raw))
    return records


def chain_figure(task: StreamTask) -> Figure:
    batch, process = numbers(), task._program.process_batch
    [source] = task._topology.sources
    encode_key, encode, produce = TEXT.serialize, NUMBER.serialize, Silent().send

    def loop() -> None:
        for context, key, value in batch:
            value = double(value)
            if not keep(key, value):
                continue
            key, value = pair(key, value)
            look(key, value)
            raw_key, raw_value = encode_key("out", key), encode("out", value)
            produce(ProducerRecord("out", raw_key, raw_value, context.timestamp, context.headers))

    return Figure("chain of six without state", lambda: process(source.name, batch), loop, 1.5, is_ratio=True)


def processors_figure(task: StreamTask) -> Figure:
    batch, process = numbers(), task._program.process_batch
    encode_key, encode, produce = TEXT.serialize, NUMBER.serialize, Silent().send

    def loop() -> None:
        for context, key, value in batch:
            record = sf.Record(key, value, context.timestamp, context.headers)
            for _ in range(4):
                record = record.with_value(record.value + 1)
            raw_key, raw_value = encode_key("out", record.key), encode("out", record.value)
            produce(ProducerRecord("out", raw_key, raw_value, record.timestamp, record.headers))

    return Figure("Processor API chain of six", lambda: process("0", batch), loop, 1.5, is_ratio=False)


def json_figure(task: StreamTask) -> Figure:
    raw, partition = raw_orders(), TopicPartition("in", 0)
    decode_key, decode = TEXT.deserialize, ORDER.deserialize
    encode_key, encode = TEXT.serialize, PRICED.serialize
    produce = Silent().send

    def loop() -> None:
        for record in raw:
            key = None if record.key is None else decode_key("in", record.key)
            value = decode("in", record.value)
            if expensive(key, value):
                result = price(value)
                sent = ProducerRecord("out", encode_key("out", key), encode("out", result), record.timestamp, ())
                produce(sent)

    def engine() -> None:
        task.add_records(partition, raw)
        task.process(BATCH)

    return Figure("JSON struct in, filter, map, JSON out", engine, loop, 1.5, is_ratio=True)


def counts_figure(task: StreamTask) -> Figure:
    """Beside it, instead of a loop: the same with a commit after ten updates of each key, on disk and logged."""
    batch, process = numbers(), task._program.process_batch
    [source] = task._topology.sources
    turns = cycle([False] * 9 + [True])

    def with_commits() -> None:
        process(source.name, batch)
        if next(turns):
            task._has_uncommitted_work = True
            commit(task)

    return Figure(
        "keyed count, warm cache",
        lambda: process(source.name, batch),
        with_commits,
        1.0,
        is_ratio=False,
        beside="with commits",
    )


FIGURES: Sequence[tuple[Callable[[], sf.Topology], Callable[[StreamTask], Figure]]] = (
    (chain, chain_figure),
    (processors, processors_figure),
    (json_to_json, json_figure),
    (counts, counts_figure),
)


def micros(run: Callable[[], None], batches: int) -> float:
    began = time.thread_time()
    for _ in range(batches):
        run()
    return (time.thread_time() - began) / batches / BATCH * 1e6


@dataclass(frozen=True)
class Measured:
    """Microseconds per record, by turn: of the engine, and of what runs beside it."""

    engine: Sequence[float]
    beside: Sequence[float]

    def judged(self, figure: Figure) -> float:
        """A ratio is the median over turns. Others only make a machine slower: for a time of its own the best turn counts."""
        if figure.is_ratio:
            return statistics.median(own / other for own, other in zip(self.engine, self.beside, strict=True))
        return min(self.engine)


def measure(figure: Figure, rounds: int, batches: int) -> Measured:
    micros(figure.engine, batches), micros(figure.loop, batches)
    turns = [(micros(figure.engine, batches), micros(figure.loop, batches)) for _ in range(rounds)]
    return Measured([turn[0] for turn in turns], [turn[1] for turn in turns])


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=25, help="turns of each (default: %(default)s)")
    parser.add_argument(
        "--batches", type=int, default=10, help="of a thousand records, per turn (default: %(default)s)"
    )
    parser.add_argument("--page", action="store_true", help="put the table into docs/performance.md as well")
    parser.add_argument("--strict", action="store_true", help="end with 1 if a bar is missed (else with 0)")
    given = parser.parse_args(arguments)
    lines = []
    for line in table(given.rounds, given.batches):
        lines.append(line)
        print(line, flush=True)
    if given.page:
        page.put("micro", [page.machine(), "", *lines])
    return 1 if given.strict and any("MISSED" in line for line in lines) else 0


def table(rounds: int, batches: int) -> Iterator[str]:
    yield "| what | engine us (best) | beside it, us (best) | bar | verdict |"
    yield "| --- | --- | --- | --- | --- |"
    for topology, figure_of in FIGURES:
        with running(topology()) as task:
            yield judged(figure_of(task), rounds, batches)
    yield from micro_state.lines(rounds, batches)


def judged(figure: Figure, rounds: int, batches: int) -> str:
    gc.collect()
    gc.freeze()  # as a worker does
    found = measure(figure, rounds, batches)
    gc.unfreeze()
    value, unit = found.judged(figure), "x" if figure.is_ratio else " us"
    verdict = f"{value:.2f}{unit} {'met' if value <= figure.bar else 'MISSED'}"
    shown = (f"{statistics.median(turns):.2f} ({min(turns):.2f})" for turns in (found.engine, found.beside))
    return f"| {figure.title} | {next(shown)} | {figure.beside} {next(shown)} | <= {figure.bar:g}{unit} | {verdict} |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
