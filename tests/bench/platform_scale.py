"""A control plane with a thousand running apps: a plan of one change, and passes of the reconciler.

`python -m tests.bench.platform_scale [COUNT]`: definitions, registry (SQLite), planner, journal, reconciler, observer are the real
ones, and so is the compiler of the app that changes. Workers are pages of their doors (pretended_workers.py), the cluster is
simulated: a pass reads every page, measures, looks after health and makes a scaling decision for every app, which simulates the
assignor. Everything is judged by the clock on the wall, on whatever else the machine does.
"""

from __future__ import annotations

import logging
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import structlog
from tests.bench.pretended_workers import PARTITIONS, STORE_BYTES, PretendedCluster, PretendedDoors, SightOfCluster
from tests.unit.streamfleet_platform.simulated_world import Lab, locks_of

from streamfleet_platform import views
from streamfleet_platform.reconcile.cluster_watch import ClusterWatch
from streamfleet_platform.reconcile.door_observer import DoorObserver
from streamfleet_platform.reconcile.state_watch import StateWatch
from streamfleet_platform.topologies.compiler import Compiled, compile_topology

PLAN_SECONDS = 2.0
PASS_SECONDS = 5.0
DECIDE_EVERY_SECONDS = 6.0
"""Between two passes, by the lab's clock: so every pass decides about every app."""
SETTLED_SECONDS = 40.0
CHANGED = """\
import streamfleet as sf


def changed():
    text = sf.serdes.string()
    builder = sf.StreamsBuilder()
    words = builder.stream("NAME-in", key_serde=text, value_serde=text)
    words.group_by_key(name="by-key").count(store="counts").to_stream(name="updates").to("NAME-out", value_serde=sf.serdes.long())
    return builder.build()
"""


OWN = "own"
"""The module of one app that shares its code with no other."""
UNCHANGED = "pass\n"


class LargeLab(Lab):
    """Every app has a lock of its own; only what is measured is compiled by a real child process."""

    def compile(self, _code: Any, entrypoint: Any, **settings: Any) -> Any:
        module, _, entry = entrypoint.partition(":")
        if entry == "changed" or (module == OWN and (_code / f"{OWN}.py").read_text() != UNCHANGED):
            return compile_topology(_code, entrypoint, **settings)
        lock = locks_of(entry, entry)
        self.hashes[entry] = lock.hash
        return Compiled(lock, True, "<svg/>")

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.hashes: dict[str, str] = {}
        self.cluster = PretendedCluster(self.runtime)
        self.doors = PretendedDoors(self.runtime, self.clock, self.hashes)

    def observe_for_real(self) -> None:
        """From here on by the doors' pages."""
        for worker in self.runtime.list():
            parts = self.world.revisions.get(worker.app, worker.revision).lock.sub_topologies
            stateful = [part["content_id"] for part in parts if part["stores"]]
            self.runtime.stored_task_bytes[worker.app, worker.slot] = {
                f"{content}_{partition}": STORE_BYTES for content in stateful for partition in range(PARTITIONS)
            }
        sight: Any = SightOfCluster(self.cluster)
        clusters = ClusterWatch(lambda _: sight, self.clock)
        doors: Any = self.doors
        self.observer_of_doors = DoorObserver(doors, self.clock, clusters, StateWatch(self.runtime))

        def observe(asked: Any) -> Any:
            doors.look()
            return self.observer_of_doors.observe(asked)

        vars(self.observer)["observe"] = observe

    def pass_once(self) -> None:
        assert self.server is not None
        self.server.loop.step()


def main(count: int) -> int:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    with tempfile.TemporaryDirectory() as directory:
        lab = LargeLab(Path(directory))
        (lab.source / "code.py").write_text(CHANGED.replace("NAME", f"app{count // 2}"))
        for number in range(count):
            lab.cluster.add(f"app{number}-in", PARTITIONS)
            lab.declare(f"app{number}", entry=f"app{number}", min=1 + (number % 5 == 0))
        own = count // 3
        _declare_own(lab, own)
        server = lab.start()
        deploying = _seconds(lambda: _deploy(lab, count))
        print(f"{count} apps applied and deployed in {deploying:.1f} s, workers simulated")
        lab.observe_for_real()
        for _ in range(2):  # two looks make a measure, and groups are to be stable for a while
            _pass(lab, SETTLED_SECONDS)
        cpu = time.process_time()
        deciding = [_pass(lab) for _ in range(5)]  # what the first of them has to compute for the first time included
        cpu = (time.process_time() - cpu) / len(deciding)
        told = _decided(lab, count)
        pass_seconds = max(deciding)
        print(
            f"reconcile pass over {count} running apps of {2 * PARTITIONS} tasks, with {count} scaling decisions ({told}): "
            f"worst {pass_seconds:.2f} s, median {statistics.median(deciding):.2f} s of {len(deciding)} "
            f"({cpu:.2f} s of CPU each, by which nothing is judged)"
        )
        nothing = _seconds(lambda: lab.fleet.plan(views.SourceRequest()))
        (lab.source / f"{OWN}.py").write_text(CHANGED.replace("NAME", f"app{own}").replace("changed", f"app{own}"))
        code_seconds = _seconds(lambda: _plan_one(lab, own))
        (lab.source / f"{OWN}.py").write_text(UNCHANGED)
        lab.declare(f"app{count // 2}", entry="changed", min=1 + (count // 2 % 5 == 0))
        plan_seconds = _seconds(lambda: _plan_one(lab, count // 2))
        print(
            f"plan without a change: {nothing:.2f} s; of one app among {count}, compiled: "
            f"{plan_seconds:.2f} s with another definition, {code_seconds:.2f} s with other code of its own"
        )
        lab.observer_of_doors.close()
        server.close()
    print(f"bounds for 1000 apps, on the wall's clock: {PASS_SECONDS} s per pass, {PLAN_SECONDS} s per plan")
    scale = max(count, 1000) / 1000
    return 0 if pass_seconds <= PASS_SECONDS * scale and max(plan_seconds, code_seconds) <= PLAN_SECONDS * scale else 1


def _declare_own(lab: LargeLab, number: int) -> None:
    (lab.source / f"{OWN}.py").write_text(UNCHANGED)
    path = lab.source / "apps" / f"app{number}.yaml"
    path.write_text(path.read_text().replace(f"code:app{number}", f"{OWN}:app{number}"))


def _pass(lab: LargeLab, after_seconds: float = DECIDE_EVERY_SECONDS) -> float:
    lab.clock.advance(after_seconds)
    return _seconds(lab.pass_once)


def _decided(lab: LargeLab, count: int) -> str:
    """That it was all done: every app decided about, by its numbers, and well."""
    decisions = lab.fleet.decisions().scaling
    causes = Counter(f"{decision.action}: {decision.cause}" for decision in decisions)
    assert len(decisions) == count and not {"blind", "settling"} & {each.cause for each in decisions}, causes
    assert causes["up: cpu-bound"] >= count // 10 - 1, causes
    apps = lab.fleet.apps()
    assert {app.phase for app in apps} == {"running"}, Counter(f"{app.phase}: {app.reason}" for app in apps)
    assert all(app.drift == 0 and app.tasks == 2 * PARTITIONS for app in apps)
    return ", ".join(f"{number} {cause}" for cause, number in causes.most_common())


def _deploy(lab: LargeLab, count: int) -> None:
    begun = lab.apply().operations
    assert len(begun) == count
    for _ in range(20):
        lab.step()
        if all(app.phase == "running" for app in lab.fleet.apps()):
            return
    raise AssertionError({app.phase for app in lab.fleet.apps()})


def _plan_one(lab: LargeLab, number: int) -> None:
    changes = [change for change in lab.fleet.plan(views.SourceRequest()).changes if change.action != "none"]
    assert [(change.app, change.verdict) for change in changes] == [(f"app{number}", "RESTART")], changes


def _seconds(what: Callable[[], object]) -> float:
    began = time.perf_counter()
    what()
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000))
