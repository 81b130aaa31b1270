"""Prober: asks workers for keys and ranges while they come and go, and holds every answer against the input.

The answers of exactly-once workers are exact: a count is that of the records up to the position it was given with. And they are
the owner's, or say that they are not: among those that claim to be, no position of a partition is older than one that was given
before the question was asked. A worker that lost a partition and answers all the same would give an older one. An answer that
is late says by how much; only of a task that ran there, and may have another owner by now, that is not known, but its position is.

At-least-once workers may repeat what was not committed, such as by one that leaves in the middle of a rebalance: then a count is
at least that of the records up to its position, and a position may be older than one that was given before. So half of all
questions are for the worker that is asked and no other, and what it claims is held against the logs of all (ownership.py), when
the prober stops.
"""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from tests.queries.fleet import QueryFleet, until
from tests.queries.ownership import Claim, false_claims, starts

Connection = http.client.HTTPConnection

SCANS = 0.05
"""Of all questions."""


class _Asked(NamedTuple):
    worker: str | None
    """Who has to answer by itself."""
    at: float
    began: float
    floors: dict[int, int]
    """Partition -> the newest position that an owner had given before."""


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
        self._claims: list[Claim] = []
        self._answered: Counter[int] = Counter()

    def start(self, threads: int = 2) -> None:
        for number in range(threads):
            thread = threading.Thread(target=self._probe, args=(random.Random(number),), daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """Once more is no harm."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(30)
        begun = [start for worker in self._fleet.workers for start in starts(worker.name, worker.events())]
        self.errors += false_claims(self._claims, begun)
        self._claims.clear()

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
            workers = [worker for worker in self._fleet.workers if worker.address is not None]
            known = list(self._fleet.input.partition_of)
            if not workers or not known:
                time.sleep(0.01)
                continue
            worker = choice.choice(workers)
            door = worker.address
            if door is None:
                continue  # stopped this moment
            connection = connections.setdefault(door, http.client.HTTPConnection(*door, timeout=10))
            asked = worker.name if choice.random() < 0.5 else None
            try:
                if choice.random() < SCANS:
                    self.scan(connection, choice.randrange(self._fleet.partitions), worker=asked)
                else:
                    self.send(connection, choice.choice(known), worker=asked)()
            except (OSError, http.client.HTTPException):
                connection.close()
                del connections[door]
                self.statuses["unreachable"] += 1
        for connection in connections.values():
            connection.close()

    def send(self, connection: Connection, key: str, *, worker: str | None = None) -> Callable[[], int]:
        """Ask now; what is returned waits for the answer, checks it and returns its status. With the name of the worker at the
        other end it is that worker who has to answer."""
        partition = self._fleet.input.partition_of[key]
        receive = self._begin(connection, f"key/{key}", [], [partition], worker)

        def check() -> int:
            status, body, asked = receive()
            found = status == 200 or body.get("code") == "key_not_found"
            self._note(key, status if not found else body["active"], body, asked)
            if found:
                self._check(partition, {key: body.get("value", 0)}, body, asked)
            return status

        return check

    def scan(self, connection: Connection, partition: int, *, worker: str | None = None) -> None:
        """A range over everything: of all partitions, or of one, if a worker has to answer by itself."""
        wanted = range(self._fleet.partitions) if worker is None else [partition]
        parameters = ["limit=1000"] if worker is None else ["limit=1000", f"partitions={partition}"]
        status, body, asked = self._begin(connection, "range", parameters, wanted, worker)()
        is_active = status == 200 and all(part["active"] for part in body["partitions"].values())
        self._note("a scan", status if status != 200 else is_active, body, asked)
        if status != 200:
            return
        if not body["complete"] or sorted(map(int, body["partitions"])) != sorted(wanted):
            self.errors.append(f"a scan of {sorted(wanted)} that is not whole: {body}")
        for number, part in body["partitions"].items():
            counts = {row["key"]: row["value"] for row in part["rows"]}
            absent = [key for key, where in list(self._fleet.input.partition_of.items()) if where == int(number)]
            self._check(int(number), dict.fromkeys(absent, 0) | counts, part, asked)

    def _begin(
        self, connection: Connection, path: str, parameters: list[str], partitions: Iterable[int], worker: str | None
    ) -> Callable[[], tuple[int, dict[str, Any], _Asked]]:
        with self._lock:
            floors = {partition: self._newest.get(partition, -1) for partition in partitions}
        asked = _Asked(worker, time.time(), time.monotonic(), floors)
        parameters = [*parameters, f"stale={'true' if self._stale else 'false'}"]
        if worker is not None:
            parameters.append("forward=false")
        connection.request("GET", f"/query/counts/{path}?{'&'.join(parameters)}")

        def receive() -> tuple[int, dict[str, Any], _Asked]:
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read()), asked

        return receive

    def _note(self, what: str, outcome: int | bool, body: dict[str, Any], asked: _Asked) -> None:
        with self._lock:
            name = ("active" if outcome else "stale") if isinstance(outcome, bool) else str(outcome)
            self.statuses[name] += 1
            if isinstance(outcome, bool):
                self.latencies_ms.append((time.monotonic() - asked.began) * 1000)
            elif outcome != 503 and (outcome != 421 or asked.worker is None):
                self.errors.append(f"{what}: {outcome} {body}")

    def _check(self, partition: int, counts: dict[str, int], told: dict[str, Any], asked: _Asked) -> None:
        """Counts of one partition, with what is told of how fresh they are."""
        if not told["active"] and not told["position"]:
            self._check_copy(counts, told)
            return
        [(_, offsets)] = told["position"].items() or [("", {})]
        position = offsets.get(str(partition), -1)
        for key, value in counts.items():
            expected = self._fleet.input.count_up_to(key, partition, position)
            if value < expected or (self._fleet.is_exact and value != expected):
                self.errors.append(f"{key}: {value} at position {position}, where it was {expected}")
        if not told["active"]:
            if not self._stale or told["lag_records"] is not None:
                self.errors.append(f"the answer of a former owner that is none: {told}")
            return
        floor = asked.floors[partition]
        if self._fleet.is_exact and position < floor:
            self.errors.append(f"partition {partition} is at {position}, and was at {floor} before: {told}")
        with self._lock:
            self._newest[partition] = max(self._newest.get(partition, -1), position)
            self._answered[partition] += 1
            if asked.worker is not None:
                self._claims.append(Claim(asked.worker, partition, asked.at, time.time(), position))

    def _check_copy(self, counts: dict[str, int], told: dict[str, Any]) -> None:
        lag = told["lag_records"]
        is_known = all(self._fleet.input.was_written(key, value) for key, value in counts.items())
        if not self._stale or not is_known or not isinstance(lag, int) or lag < 0:
            self.errors.append(f"a late answer that is none: {told}")
        else:
            self.lags.append(lag)

    def report(self, title: str) -> str:
        return (
            f"{title}: {dict(self.statuses)}, p50 {sorted(self.latencies_ms)[len(self.latencies_ms) // 2]:.1f} ms, "
            f"p99 {self.p99_ms():.1f} ms"
        )
