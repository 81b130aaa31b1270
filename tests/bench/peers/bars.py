"""What the engine has to reach, and whether it did: CPU, speed, memory, start and idle CPU, alone and beside its peers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.bench.peers.comparison import OURS, Comparison

MEMORY_MB = 200
MEMORY_TO_JAVA = 0.5
START_SECONDS = 1.0
START_TO_JAVA = 0.5
IDLE_SHARE = 0.01


@dataclass(frozen=True)
class CpuBar:
    """At most so many microseconds per record, at most such a share of Java's, at least so many times cheaper than a peer."""

    micros: float | None
    of_java: float
    peers: dict[str, float]


CPU_BARS = {
    "W1": CpuBar(4.5, 1.2, {"bytewax": 2.0, "quix": 3.8}),
    "W2": CpuBar(5.5, 0.6, {"bytewax": 2.8, "quix": 5.9}),
    "W2u": CpuBar(14, 1.2, {"bytewax": 2.3}),
    "W3": CpuBar(3.0, 0.8, {}),
    "W4": CpuBar(8, 0.85, {"quix": 7.9}),
    "W4c": CpuBar(5, 0.95, {}),
    "W5": CpuBar(30, 0.75, {"bytewax": 1.4, "quix": 12}),
    "W6": CpuBar(4.5, 1.0, {"quix": 9}),
    "W7": CpuBar(7.5, 0.7, {"quix": 4.9}),
    "Ws": CpuBar(None, 1.0, {}),
    "Wj": CpuBar(None, 1.0, {}),
    "R": CpuBar(3.5, 1.0, {"quix": 3.9}),
}
RATE_BARS = {"W1": 220_000, "R": 300_000}
RATES_TO_PEERS = {"W1": {"java": 0.7, "bytewax": 2.1}}
HEAD = ("workload", "what", "measured", "bar", "verdict")


def lines(rows: Sequence[dict[str, Any]]) -> list[str]:
    found = [f"| {' | '.join(HEAD)} |", "|" + " --- |" * len(HEAD)]
    comparison = Comparison(rows)
    for name in comparison.workloads:
        found += [f"| {name} | {' | '.join(cells)} |" for cells in _of_workload(comparison, name)]
    return found


def _of_workload(seen: Comparison, name: str) -> Iterator[tuple[str, ...]]:
    is_long = seen.is_long(name)
    bar = CPU_BARS.get(name.split(" ", maxsplit=1)[0])
    workload = name.split(" ", maxsplit=1)[0]
    if bar is not None:
        if bar.micros is not None:
            yield from _at_most("CPU us per record", seen.median(name, OURS, "cpu_us"), bar.micros)
        # Java's compiler is at work during a short run: its figures flatter the others. A restore is compared without its start.
        if is_long or workload == "R":
            yield from _at_most("CPU, of Java's", seen.ratio(name, "java", "cpu_us"), bar.of_java, "x")
        for peer, times in bar.peers.items():
            yield from _at_least(f"CPU, {peer}'s to ours", _inverse(seen.ratio(name, peer, "cpu_us")), times, "x")
    if workload in RATE_BARS:
        yield from _at_least("records/s", seen.median(name, OURS, "rate"), RATE_BARS[workload])
    for peer, times in RATES_TO_PEERS.get(workload, {}).items():
        if peer != "java" or is_long:
            yield from _at_least(f"records/s, to {peer}'s", seen.ratio(name, peer, "rate"), times, "x")
    if workload in ("W1", "W2", "W3"):
        yield from _at_most("peak memory, MB", seen.median(name, OURS, "rss_mb"), MEMORY_MB)
        yield from _at_most("peak memory, of Java's", seen.ratio(name, "java", "rss_mb"), MEMORY_TO_JAVA, "x")
    if workload == "R":
        yield from _at_most("start to first result, s", seen.median(name, OURS, "start_s"), START_SECONDS)
        yield from _at_most("start, of Java's", seen.ratio(name, "java", "start_s"), START_TO_JAVA, "x")
    yield from _below("idle CPU, cores", seen.median(name, OURS, "idle_share"), IDLE_SHARE)


def _at_most(what: str, value: float | None, limit: float, unit: str = "") -> Iterator[tuple[str, ...]]:
    return _judged(what, value, limit, unit, "<=", lambda found: found <= limit)


def _below(what: str, value: float | None, limit: float, unit: str = "") -> Iterator[tuple[str, ...]]:
    return _judged(what, value, limit, unit, "<", lambda found: found < limit)


def _at_least(what: str, value: float | None, limit: float, unit: str = "") -> Iterator[tuple[str, ...]]:
    return _judged(what, value, limit, unit, ">=", lambda found: found >= limit)


def _judged(
    what: str, value: float | None, limit: float, unit: str, sign: str, is_met: Callable[[float], bool]
) -> Iterator[tuple[str, ...]]:
    if value is not None:
        yield what, f"{_figure(value)}{unit}", f"{sign} {_figure(limit)}{unit}", "met" if is_met(value) else "MISSED"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _inverse(ratio: float | None) -> float | None:
    return None if not ratio else 1 / ratio
