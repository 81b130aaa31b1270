"""Prober: asks workers for keys while they come and go, and holds every answer against the input.

The answers of exactly-once workers are exact: a count is that of the records up to the position it was given with. And they are
the owner's, or say that they are not: among those that claim to be, no position of a partition is older than one that was given
before the question was asked. A worker that lost a partition and answers all the same would give an older one. An answer that
is late says by how much; only of a task that ran there, and may have another owner by now, that is not known, but its position is.

At-least-once workers may repeat what was not committed, such as by one that leaves in the middle of a rebalance: then a count is
at least that of the records up to its position, and a position may be older than one that was given before.
"""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.queries.fleet import QueryFleet, until


class Prober:
    def __init__(self, fleet: QueryFleet, *, stale: bool = False) -> None:
        self._fleet = fleet
        self._stale = stale
        self._lock = threading.Lock()
        self._newest: dict[int, int] = {}
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self.errors: list[str] = []
        self.statuses: Counter[str] = Counter()
        self.latencies_ms: list[float] = []
        self.lags: list[int] = []
        """Of late answers, in changelog records."""
        self._answered: Counter[int] = Counter()

    def start(self, threads: int = 2) -> None:
        for number in range(threads):
            thread = threading.Thread(target=self._probe, args=(random.Random(number),), daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(30)

    def wait_for_all_partitions(self, answers: int = 50) -> None:
        """Until every partition was answered for by its owner that many times more; input goes on meanwhile."""
        before = self._answered.copy()

        def enough() -> bool:
            self._fleet.input.write(20)
            return all(self._answered[p] >= before[p] + answers for p in range(self._fleet.partitions))

        until(enough)
        assert self.errors == [], self.errors[:5]

    def p99_ms(self) -> float:
        ordered = sorted(self.latencies_ms)
        return ordered[int(len(ordered) * 0.99)] if ordered else 0.0

    def _probe(self, choice: random.Random) -> None:
        connections: dict[tuple[str, int], http.client.HTTPConnection] = {}
        while not self._stopping.is_set():
            doors = self._fleet.doors()
            known = list(self._fleet.input.partition_of)
            if not doors or not known:
                time.sleep(0.01)
                continue
            door = choice.choice(doors)
            connection = connections.setdefault(door, http.client.HTTPConnection(*door, timeout=10))
            try:
                self.ask(connection, choice.choice(known))
            except (OSError, http.client.HTTPException):
                connection.close()
                del connections[door]
                self.statuses["unreachable"] += 1
        for connection in connections.values():
            connection.close()

    def ask(self, connection: http.client.HTTPConnection, key: str) -> None:
        self.send(connection, key)()

    def send(self, connection: http.client.HTTPConnection, key: str) -> Callable[[], int]:
        """Ask now; what is returned waits for the answer, checks it and returns its status."""
        partition = self._fleet.input.partition_of[key]
        with self._lock:
            floor = self._newest.get(partition, -1)
        began = time.monotonic()
        connection.request("GET", f"/query/counts/key/{key}" + ("?stale=true" if self._stale else ""))

        def receive() -> int:
            answer = connection.getresponse()
            body = json.loads(answer.read())
            took_ms = (time.monotonic() - began) * 1000
            self._check(key, partition, floor, answer.status, body, took_ms)
            return answer.status

        return receive

    def _check(self, key: str, partition: int, floor: int, status: int, body: dict[str, Any], took_ms: float) -> None:
        found = status == 200 or body.get("code") == "key_not_found"
        with self._lock:
            self.statuses[str(status) if not found else "active" if body["active"] else "stale"] += 1
            if not found:
                if status != 503:
                    self.errors.append(f"{key}: {status} {body}")
                return
            self.latencies_ms.append(took_ms)
        value = body.get("value", 0)
        is_copy = not body["active"] and not body["position"]
        if is_copy:
            lag = body["lag_records"]
            if not self._stale or not self._fleet.input.was_written(key, value) or not isinstance(lag, int) or lag < 0:
                self.errors.append(f"{key}: a late answer that is none: {body}")
            else:
                self.lags.append(lag)
            return
        [(_, offsets)] = body["position"].items() or [("", {})]
        position = offsets.get(str(partition), -1)
        expected = self._fleet.input.count_up_to(key, position)
        if value < expected or (self._fleet.is_exact and value != expected):
            self.errors.append(f"{key}: {value} at position {position}, where it was {expected}")
        if not body["active"]:
            if not self._stale or body["lag_records"] is not None:
                self.errors.append(f"{key}: the answer of a former owner that is none: {body}")
            return
        if self._fleet.is_exact and position < floor:
            self.errors.append(f"{key}: partition {partition} is at {position}, and was at {floor} before: {body}")
        with self._lock:
            self._newest[partition] = max(self._newest.get(partition, -1), position)
            self._answered[partition] += 1

    def report(self, title: str) -> str:
        return (
            f"{title}: {dict(self.statuses)}, p50 {sorted(self.latencies_ms)[len(self.latencies_ms) // 2]:.1f} ms, "
            f"p99 {self.p99_ms():.1f} ms"
        )
