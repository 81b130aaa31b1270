"""A control plane with a thousand running apps: a plan of one change, and passes of the reconciler.

`python -m tests.bench.platform_scale [COUNT]`: definitions, registry (SQLite), planner, journal and reconciler are the real ones,
and so is the compiler of the app that changes; workers, doors and the cluster are simulated, so what is measured is the platform.
"""

from __future__ import annotations

import logging
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import structlog
from tests.unit.streamfleet_platform.simulated_world import Lab, locks_of

from streamfleet_platform import views
from streamfleet_platform.topologies.compiler import Compiled, compile_topology

PLAN_SECONDS = 2.0
PASS_SECONDS = 5.0
CHANGED = """\
import streamfleet as sf


def changed():
    text = sf.serdes.string()
    builder = sf.StreamsBuilder()
    words = builder.stream("NAME-in", key_serde=text, value_serde=text)
    words.group_by_key(name="by-key").count(store="counts").to_stream(name="updates").to("NAME-out", value_serde=sf.serdes.long())
    return builder.build()
"""


class LargeLab(Lab):
    """Every app has a lock of its own; only what is measured is compiled by a real child process."""

    def compile(self, _code: Any, entrypoint: Any, **settings: Any) -> Any:
        _, _, entry = entrypoint.partition(":")
        if entry == "changed":
            return compile_topology(_code, entrypoint, **settings)
        return Compiled(locks_of(entry, entry), True, "<svg/>")


def main(count: int) -> int:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    with tempfile.TemporaryDirectory() as directory:
        lab = LargeLab(Path(directory))
        (lab.source / "code.py").write_text(CHANGED.replace("NAME", f"app{count // 2}"))
        for number in range(count):
            lab.declare(f"app{number}", entry=f"app{number}")
        server = lab.start()
        deploying = _seconds(lambda: _deploy(lab, count))
        print(f"{count} apps applied and deployed in {deploying:.1f} s, workers simulated")
        passes = [_seconds(lab.step) for _ in range(5)]
        pass_seconds = statistics.median(passes)
        print(
            f"reconcile pass over {count} running apps: {pass_seconds:.2f} s (median of 5; worst {max(passes):.2f} s)"
        )
        nothing = _seconds(lambda: lab.fleet.plan(views.SourceRequest()))
        lab.declare(f"app{count // 2}", entry="changed")
        cpu = _cpu_seconds()
        plan_seconds = _seconds(lambda: _plan_one(lab, count // 2))
        cpu = _cpu_seconds() - cpu
        print(
            f"plan without a change: {nothing:.2f} s; of one changed app among {count}, compiled: {plan_seconds:.2f} s "
            f"({cpu:.2f} s of CPU, with the compiler's)"
        )
        server.close()
    print(f"bounds for 1000 apps: {PASS_SECONDS} s per pass, {PLAN_SECONDS} s per plan")
    scale = max(count, 1000) / 1000
    return 0 if pass_seconds <= PASS_SECONDS * scale and min(cpu, plan_seconds) <= PLAN_SECONDS * scale else 1


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


def _cpu_seconds() -> float:
    """A machine that does other things as well makes a plan late, and not more work."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def _seconds(what: Callable[[], object]) -> float:
    began = time.perf_counter()
    what()
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000))
