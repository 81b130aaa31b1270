"""The input topics, filled once per broker from seeded generators, and the facts that a correct run has to agree with.

    orders.Nk, long.Nk    key = customer, 10,000 of them, a few of them busy; JSON of about 95 bytes, a millisecond apart
    uniform.Nk            the same with a million customers, all alike
    keys.Nk               the same, every key once
    pairs.Nk, paid.Nk     every key once in each, 100 ms apart
    lines.Nk              no key, five words
    customers             a table of all customers, older than every order

Topics of one family are beginnings of the same sequence, so a slow runner can take a short one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

PARTITIONS = 4
CUSTOMERS = 10_000
SIZES = {
    "orders": (2000, 200, 20),
    "long": (8000,),
    "uniform": (2000, 200),
    "keys": (1000, 100, 1),
    "pairs": (400,),
    "lines": (400, 100, 10),
}
TIERS = (b"gold", b"silver", b"basic")
Row = tuple[bytes | None, bytes, int]


class Dataset:
    """Fills a topic when it is first asked for."""

    def __init__(self, bootstrap: str) -> None:
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "linger.ms": 50,
                "partitioner": "murmur2_random",
                "queue.buffering.max.messages": 1_000_000,
                "queue.buffering.max.kbytes": 500_000,
            }
        )
        self._begin_ms = (int(time.time()) - 6 * 3600) // 60 * 60_000
        self.facts: dict[str, dict[str, int]] = {}

    def topic(self, family: str, thousands: int) -> str:
        """The name of the topic, which is there and full."""
        name = f"{family}.{thousands}k"
        if name not in self.facts:
            self._fill(name, family, thousands * 1000)
        return name

    def partner(self, family: str, thousands: int) -> str:
        """The second input of a workload: the other side of a join."""
        if family != "pairs":
            return self._customers()
        return self.topic("paid", thousands)

    def create(self, name: str, **config: str) -> None:
        for future in self._admin.create_topics([NewTopic(name, PARTITIONS, 1, config=config)]).values():
            future.result(30)

    def send(self, name: str, rows: Iterable[Row], partition_of: dict[bytes, int] | None = None) -> None:
        produce = self._producer.produce
        for number, (key, value, timestamp) in enumerate(rows):
            partition = -1 if partition_of is None else partition_of[key or b""]
            while True:
                try:
                    produce(name, value, key, partition, None, None, timestamp)
                    break
                except BufferError:
                    self._producer.poll(0.05)
            if number % 1000 == 0:
                self._producer.poll(0)
        self._producer.flush(120)

    def _fill(self, name: str, family: str, count: int) -> None:
        print(f"filling {name}", flush=True)
        self.create(name)
        facts: dict[str, int] = {"records": count}
        chance = np.random.default_rng(7)
        if family == "lines":
            facts["words"] = 5 * count
            self.send(name, self._lines(count, chance))
        else:
            later = 100 if family == "paid" else 0
            self.send(name, self._orders(_customers_of(family, count, chance), later, facts))
        self.facts[name] = facts

    def _lines(self, count: int, chance: np.random.Generator) -> Iterator[Row]:
        words = _busy_few(chance, SIZES["lines"][0] * 5000, CUSTOMERS)[: count * 5].reshape(count, 5).tolist()
        for number, line in enumerate(words):
            yield None, " ".join(f"w{word}" for word in line).encode(), self._begin_ms + number

    def _orders(self, customers: Any, later_ms: int, facts: dict[str, int]) -> Iterator[Row]:
        chance, count = np.random.default_rng(11), len(customers)
        amounts = np.round(chance.gamma(2.0, 40.0, count) + 0.5, 2).tolist()
        items = chance.integers(0, 100_000, count).tolist()
        jitters = chance.integers(-200, 201, count).tolist()
        facts |= {"priced": 0, "cents": 0}
        for number, customer in enumerate(customers.tolist()):
            at, amount = self._begin_ms + number + jitters[number] + later_ms, amounts[number]
            if amount >= 30:
                facts["priced"] += 1
                facts["cents"] += int(amount * 100 + 0.5)
            value = b'{"id":%d,"customer":"c%d","amount":%.2f,"item":"item-%06d","ts":%d}'
            yield b"c%d" % customer, value % (number, customer, amount, items[number], at), at

    def _customers(self) -> str:
        if "customers" not in self.facts:
            self.create("customers", **{"cleanup.policy": "compact"})
            value = b'{"name":"Customer %d","tier":"%s","country":"c%02d"}'
            at = self._begin_ms - 600_000
            rows = ((b"c%d" % c, value % (c, TIERS[c % 3], c % 50), at) for c in range(CUSTOMERS))
            self.send("customers", rows)
            self.facts["customers"] = {"records": CUSTOMERS}
        return "customers"


def _customers_of(family: str, count: int, chance: np.random.Generator) -> Any:
    if family in ("pairs", "paid"):
        return np.random.default_rng(13).permutation(SIZES["pairs"][0] * 1000)[:count]
    most = SIZES[family][0] * 1000
    if family == "keys":
        return chance.permutation(most)[:count]
    if family == "uniform":
        return chance.integers(0, 1_000_000, most)[:count]
    return _busy_few(chance, most, CUSTOMERS)[:count]


def _busy_few(chance: np.random.Generator, count: int, items: int) -> Any:
    """Some items come often, most seldom, as customers do."""
    shares = 1.0 / (np.arange(items) + 20)
    return chance.choice(items, count, p=shares / shares.sum())
