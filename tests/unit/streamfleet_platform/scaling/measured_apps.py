"""Apps under measurement."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from streamfleet_platform.model.app_policies import Scale
from streamfleet_platform.scaling.measures import Bounds, Measures, SubTopologyMeasures, Task, TaskMeasures
from streamfleet_platform.scaling.simulation import simulate

NOW = datetime(2026, 3, 11, 12, 0, tzinfo=UTC)


def chain(
    *,
    partitions=12,
    rate=10_000.0,
    lag=0.0,
    busy=(0.0002, 0.0003),
    ratio=1.5,
    slots=1,
    state=0,
    stateful=True,
    settled=True,
):
    """Two sub-topologies with a repartition topic between them, and what they measure."""
    parts = {
        "first": SubTopologyMeasures({"in": partitions}, stateful=False),
        "second": SubTopologyMeasures({"between": partitions}, stateful=stateful, fed_by={"first": ratio}),
    }
    each, relayed = rate / partitions, rate * ratio / partitions
    tasks = {Task("first", n): TaskMeasures(each, busy[0], lag / partitions) for n in range(partitions)}
    tasks |= {
        Task("second", n): TaskMeasures(0.0, busy[1], 0.0, relayed_per_second=relayed, state_bytes=state)
        for n in range(partitions)
    }
    measures = Measures(NOW, parts, tasks, placement={0: frozenset(tasks)}, stable_since=NOW - timedelta(hours=1))
    if slots > 1:
        measures = replace(measures, placement=simulate(measures, slots))
    return measures


def bounds(maximum=24, minimum=1, catch_up="30m", **options):
    scale = {"min": minimum, "max": maximum, "slo": {"maxLatency": "60s", "catchUp": catch_up}} | options.pop(
        "scale", {}
    )
    return Bounds(Scale.model_validate(scale), **options)
