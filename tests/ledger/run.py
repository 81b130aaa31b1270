"""`python -m tests.ledger.run --seed n --seconds s --guarantee g`: one seeded schedule of faults on three workers.

Exits with 1 if there is any anomaly, and names it; the files of such a run are kept. With 3 if the broker itself is proven to have
left a transaction without markers, so that the run says nothing about the app: it has to be run again.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.ledger.app import SUB_TOPOLOGIES
from tests.ledger.bench import AT_LEAST_ONCE, EXACTLY_ONCE, open_bench
from tests.ledger.figures import Copies, copy_figures, recovery_figures
from tests.ledger.nemesis import KINDS_WITH_COPIES, Fault, Kind, draw_schedule, play
from tests.ledger.oracle import Anomaly
from tests.ledger.variants import PLAIN, Variant
from tests.ledger.workload import LedgerSpec

WORKERS = 3
START_SECONDS = 60.0
Say = Callable[[str], None]


@dataclass(frozen=True)
class Outcome:
    anomalies: list[Anomaly]
    faults: list[Fault]
    directory: Path
    broker_defects: list[str]
    """Proven by the broker's log and the partition: what follows them is hidden for ever, so anomalies of this run say nothing."""
    copies: Copies


def run_schedule(
    spec: LedgerSpec,
    seconds: float,
    guarantee: str,
    say: Say,
    *,
    directory: Path,
    kinds: Sequence[Kind] | None = None,
    variant: Variant = PLAIN,
) -> Outcome:
    """Start the workers, write the input over the time given while faults happen, heal, wait, check."""
    faults = draw_schedule(spec.seed, seconds, WORKERS, kinds or variant.kinds)
    options, settings = variant.worker_options, variant.broker_settings
    with open_bench(spec, guarantee, options=options, broker_settings=settings, keep=directory) as bench:
        began = time.time()
        for _ in range(WORKERS):
            bench.fleet.add().start()
        tasks = bench.spec.partitions * SUB_TOPOLOGIES
        bench.fleet.wait_for_event("task running", count=tasks, since=began, seconds=START_SECONDS)
        say(f"{tasks} tasks running after {time.time() - began:.1f} s")
        bench.wait_for_accounts()
        bench.write_in_background(seconds * 0.9)
        played = play(bench, faults, seconds, say)
        healed = time.monotonic()
        bench.disturbances += [each.disturbance for each in played if each.fault.kind != "probe"]
        anomalies = bench.finish()
        broker_defects = bench.broker_defects()
        say(f"caught up, closed and checked {time.monotonic() - healed:.1f} s after the last fault")
        if bench.repeats is not None:
            say(str(bench.repeats))
        else:
            say(f"{bench.compared_stores} stores on disk were compared with their changelogs")
        for line in recovery_figures(bench.fleet, [each for each in played if each.fault.kind != "probe"]):
            say(line)
        copies = copy_figures(bench.fleet)
        if variant.standbys:
            say(str(copies))
    return Outcome(anomalies, faults, directory, broker_defects, copies)


def summary(anomalies: list[Anomaly], most: int = 6) -> list[str]:
    """Every kind of anomaly with its first cases: one defect shows in many places."""
    lines = []
    for kind in dict.fromkeys(anomaly.kind for anomaly in anomalies):
        cases = [anomaly for anomaly in anomalies if anomaly.kind == kind]
        lines += [f"ANOMALY {anomaly}" for anomaly in cases[:most]]
        if len(cases) > most:
            lines.append(f"ANOMALY {kind}: {len(cases) - most} more")
    return lines


def _kinds(text: str) -> list[Kind]:
    chosen = [kind for kind in KINDS_WITH_COPIES if kind in text.split(",")]
    if len(chosen) != len(text.split(",")):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of {', '.join(KINDS_WITH_COPIES)}")
    return chosen


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="run the ledger app under a seeded schedule of faults, and check it")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--guarantee", default=EXACTLY_ONCE, choices=[EXACTLY_ONCE, AT_LEAST_ONCE])
    parser.add_argument("--faults", type=_kinds, help="which may be drawn: kill,pause,leave,broker,probe")
    parser.add_argument("--standbys", type=int, default=0, help="copies of each task; with warm-ups and probing")
    parser.add_argument(
        "--protocol", default="classic", choices=["classic", "streams"], help="who plans: group.protocol"
    )
    parser.add_argument("--keys", type=int, default=20)
    parser.add_argument("--records-per-key", type=int, default=500)
    return parser.parse_args()


def main() -> int:
    options = _arguments()
    spec = LedgerSpec(options.seed, options.keys, options.records_per_key)
    variant = Variant(options.standbys, options.protocol)
    directory = Path(tempfile.mkdtemp(prefix=f"streamfleet-ledger-{options.seed}-"))
    outcome = run_schedule(
        spec,
        options.seconds,
        options.guarantee,
        lambda text: print(text, flush=True),
        directory=directory,
        kinds=options.faults,
        variant=variant,
    )
    for line in summary(outcome.anomalies):
        print(line)
    for defect in outcome.broker_defects:
        print(f"BROKER {defect}")
    run = f"seed {options.seed}, {options.guarantee}, {variant}"
    print(f"{run}: {len(outcome.faults)} faults, {len(outcome.anomalies)} anomalies")
    if outcome.anomalies:
        print(f"logs and data of this run: {directory}")
        return 3 if outcome.broker_defects else 1
    shutil.rmtree(directory, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
