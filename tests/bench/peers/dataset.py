"""The input topics, filled once per broker from seeded generators, and the facts that a correct run has to agree with.

    orders.Nk      key = customer, 10,000 of them, a few of them busy; JSON of about 95 bytes, a millisecond apart
    uniform.Nk     the same with a million customers, all alike
    keys.Nk        the same, every key once
    pairs.Nk       every key once; paid.Nk: the same orders 100 ms later, each with the item of its customer
    lines.Nk       no key, five words
    customers      a table of all customers, older than every order

Times are out of order by up to 200 ms.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.bench.peers.workloads import checksum

PARTITIONS = 4
CUSTOMERS = 10_000
TIERS = (b"gold", b"silver", b"basic")
ORDER = b'{"id":%d,"customer":"c%d","amount":%.2f,"item":"item-%06d","ts":%d}'
PAID = b'{"id":%d,"customer":"c%d","amount":%.2f,"item":"item-%d","ts":%d}'
CUSTOMER = b'{"name":"Customer %d","tier":"%s","country":"c%02d"}'
Row = tuple[bytes | None, bytes, int]


class Dataset:
    """Fills a topic when it is first asked for."""

    def __init__(self, bootstrap: str) -> None:
        quiet = {"bootstrap.servers": bootstrap, "log_level": 0}
        self._admin = AdminClient(quiet)
        self._producer = Producer(
            {
                **quiet,
                "linger.ms": 50,
                "partitioner": "murmur2_random",
                "sticky.partitioning.linger.ms": 0,  # else a short topic of records without key is one partition
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
        return self.topic("paid", thousands) if family == "pairs" else self._customers()

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
        if self._producer.flush(120):
            raise RuntimeError(f"topic {name} could not be filled")

    def _fill(self, name: str, family: str, count: int) -> None:
        print(f"filling {name}", flush=True)
        self.create(name)
        facts: dict[str, int] = {"records": count}
        if family == "lines":
            facts["words"] = 5 * count
            self.send(name, self._lines(count))
        else:
            self.send(name, orders(family, count, self._begin_ms, facts))
        self.facts[name] = facts

    def _lines(self, count: int) -> Iterator[Row]:
        words = _busy_few(count * 5, CUSTOMERS).reshape(count, 5).tolist()
        for number, line in enumerate(words):
            yield None, " ".join(f"w{word}" for word in line).encode(), self._begin_ms + number

    def _customers(self) -> str:
        if "customers" not in self.facts:
            self.create("customers", **{"cleanup.policy": "compact"})
            at = self._begin_ms - 600_000
            rows = ((b"c%d" % c, CUSTOMER % (c, TIERS[c % 3], c % 50), at) for c in range(CUSTOMERS))
            self.send("customers", rows)
            self.facts["customers"] = {"records": CUSTOMERS}
        return "customers"


def orders(family: str, count: int, begin_ms: int, facts: dict[str, int]) -> Iterator[Row]:
    """Written down in `facts` on the way: how many a filter lets through, what they add up to, and the checksum of all."""
    customers, chance = _customers_of(family, count), np.random.default_rng(11)
    amounts = np.round(chance.gamma(2.0, 40.0, count) + 0.5, 2).tolist()
    items = chance.integers(0, 100_000, count).tolist()
    jitters = chance.integers(-200, 201, count).tolist()
    facts |= {"priced": 0, "cents": 0, "checksum": 0}
    template, later_ms = (PAID, 100) if family == "paid" else (ORDER, 0)
    for number, customer in enumerate(customers.tolist()):
        at, amount = begin_ms + number + jitters[number] + later_ms, amounts[number]
        if amount >= 30:
            facts["priced"] += 1
            facts["cents"] += int(amount * 100 + 0.5)
        item = customer if family == "paid" else items[number]
        key, value = b"c%d" % customer, template % (number, customer, amount, item, at)
        facts["checksum"] += checksum(key, value)
        yield key, value, at


def _customers_of(family: str, count: int) -> Any:
    if family in ("pairs", "paid", "keys"):
        return np.random.default_rng(13).permutation(count)
    if family == "uniform":
        return np.random.default_rng(7).integers(0, 1_000_000, count)
    return _busy_few(count, CUSTOMERS)


def _busy_few(count: int, items: int) -> Any:
    """Some items come often, most seldom, as customers do."""
    shares = 1.0 / (np.arange(items) + 20)
    return np.random.default_rng(7).choice(items, count, p=shares / shares.sum())
