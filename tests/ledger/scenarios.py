"""One fault, aimed at one point of the engine: for what a seeded schedule would meet only by luck.

Used by the tests of mutations (each has a scenario in which it must do harm) and of recovery times. The same scenario without a
mutation must do none.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Literal

from tests.ledger.app import SUB_TOPOLOGIES
from tests.ledger.bench import AT_LEAST_ONCE, EXACTLY_ONCE, Bench, open_bench
from tests.ledger.fleet import Worker
from tests.ledger.oracle import Anomaly
from tests.ledger.stints import Disturbance
from tests.ledger.workload import LedgerSpec

SMALL = LedgerSpec(seed=1, keys=8, records_per_key=60)
WRITE_SECONDS = 6.0
START_SECONDS = 60.0
STOPPED_SECONDS = 8.0
"""Past the session time-out of 6 s, but short of the transaction's of 10 s: its owner is a zombie with an open transaction."""


@dataclass(frozen=True)
class Scenario:
    """What the first worker meets. `peers` others run beside it and take over its tasks."""

    failpoints: tuple[str, ...]
    then: Literal["restart", "stay away", "resume", "leave", "nothing"]
    """restart: it ends at the failpoint and is started again. stay away: it is not. resume: it stops there, and goes on later as a
    zombie. leave: it leaves in the middle of the input, and comes back.
    """
    peers: int = 0
    guarantee: str = EXACTLY_ONCE
    settings: tuple[str, ...] = ()
    """Of all workers, as NAME=VALUE."""


KILLED_BEFORE_THE_END = Scenario(("after_send_offsets:kill:8",), "restart")
"""Results and offsets are sent, the transaction is open."""
KILLED_AFTER_THE_FLUSH = Scenario(("after_flush:kill:8",), "restart")
"""Changelog records of a transaction that is aborted later are in the log."""
ZOMBIE_IN_A_COMMIT = Scenario(("after_flush:stop:8",), "resume", peers=1)
TRANSACTION_LOST = Scenario(tuple(f"before_end_txn:lost:{nth}" for nth in (8, 16, 24)), "nothing")
"""The tasks stay where they are, and go back to the last commit."""
END_DELAYED = Scenario(
    (
        "before_end_txn:late_end:5",
        "after_flush:arrive:8",
        "before_end_txn:lost:8",
    ),
    "nothing",
)
"""The end of a transaction reaches the coordinator when its producer, if still in use, is in a later one, which is then lost."""
UNDISTURBED = Scenario((), "nothing", guarantee=AT_LEAST_ONCE)
KILLED_BEFORE_THE_OFFSETS = Scenario(("after_flush:kill:8",), "restart", guarantee=AT_LEAST_ONCE)
"""Results are sent, their offsets are not."""
STOPPED_WITH_RESULTS_IN_HAND = Scenario(("after_produce:stop:8",), "resume", peers=1, guarantee=AT_LEAST_ONCE)
"""Results and state are with the client, not yet with the broker; a peer goes on meanwhile."""
KILLED_WHILE_COPIES_ARE_BEHIND = Scenario(
    ("after_send_offsets:kill:8",),
    "stay away",
    peers=1,
    settings=("num.standby.replicas=1", "restore.rate.limit.bytes.per.second=1000"),
)
"""Its peer has copies of everything, and has read little of them."""
LEAVES_AND_COMES_BACK = Scenario((), "leave", guarantee=AT_LEAST_ONCE)

SCENARIOS = {
    "offsets_outside_transaction": KILLED_BEFORE_THE_END,
    "restore_uncommitted": KILLED_AFTER_THE_FLUSH,
    "generation_unchecked": ZOMBIE_IN_A_COMMIT,
    "stores_before_commit": TRANSACTION_LOST,
    "producer_reused": END_DELAYED,
    "commits_withheld": UNDISTURBED,
    "resumes_before_the_commit": KILLED_BEFORE_THE_OFFSETS,
    "leaves_without_commit": LEAVES_AND_COMES_BACK,
    "repartition_read_again": KILLED_BEFORE_THE_OFFSETS,
    "repartition_skipped": KILLED_BEFORE_THE_OFFSETS,
    "repartition_forwarded_twice": UNDISTURBED,
    "repartition_not_forwarded": UNDISTURBED,
    "absence_unnoticed": STOPPED_WITH_RESULTS_IN_HAND,
    "promoted_without_its_tail": KILLED_WHILE_COPIES_ARE_BEHIND,
}
"""By the mutation that does harm in it."""


def run_scenario(scenario: Scenario, *, seed: int, mutation: str | None = None) -> list[Anomaly]:
    options = [] if mutation is None else ["--mutation", mutation]
    options += [word for setting in scenario.settings for word in ("--setting", setting)]
    with open_bench(replace(SMALL, seed=seed), scenario.guarantee, options=options) as bench:
        start_fleet(bench, scenario)
        bench.write_in_background(WRITE_SECONDS)
        bench.disturbances += _aftermath(bench.fleet.workers[0], scenario)
        return bench.finish()


def start_fleet(bench: Bench, scenario: Scenario) -> Worker:
    """The victim, with its failpoints, and its peers; returns when all tasks run."""
    began = time.time()
    victim = bench.fleet.add()
    failpoints = [argument for failpoint in scenario.failpoints for argument in ("--failpoint", failpoint)]
    victim.start(*failpoints)
    for _ in range(scenario.peers):
        bench.fleet.add().start()
    bench.fleet.wait_for_event(
        "task running", count=bench.spec.partitions * SUB_TOPOLOGIES, since=began, seconds=START_SECONDS
    )
    if scenario.peers:
        time.sleep(3)  # tasks move to the later members in a second rebalance
    bench.wait_for_accounts()
    return victim


def _aftermath(victim: Worker, scenario: Scenario) -> list[Disturbance]:
    """What happens to the victim; returns it as it was."""
    if scenario.then == "nothing":
        return []
    if scenario.then in ("restart", "stay away"):
        kind = "kill"
        victim.must_live = False
        if victim.wait_for_end(WRITE_SECONDS * 4) is None:
            raise TimeoutError(f"{victim.name} did not reach {scenario.failpoints}")
        begin = _acted_at(victim)
        if scenario.then == "restart":
            victim.start()
    elif scenario.then == "resume":
        kind = "pause"
        begin = _wait_until_stopped(victim)
        time.sleep(STOPPED_SECONDS)
        victim.resume()
    else:
        kind = "leave"
        time.sleep(WRITE_SECONDS / 2)
        begin = time.time()
        assert victim.leave() == 0, f"{victim.name} did not leave cleanly:\n{victim.tail()}"
        victim.start()
    return [Disturbance(kind, int(begin * 1000), int(time.time() * 1000))]


def _acted_at(worker: Worker) -> float:
    """When its failpoint acted; 0 if it has not yet."""
    return max((float(e["timestamp"]) for e in worker.events() if e.get("event") == "failpoint acts"), default=0.0)


def _wait_until_stopped(worker: Worker) -> float:
    deadline = time.monotonic() + WRITE_SECONDS * 4
    while not (acted := _acted_at(worker)):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{worker.name} did not reach its failpoint")
        time.sleep(0.05)
    return acted
