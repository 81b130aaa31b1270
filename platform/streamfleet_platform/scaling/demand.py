"""What each task has to do: how many records per second it must be able to process, and how much of a slot that takes.

    demand  r = rate/rho + rate·T_move/T_catch + lag/T_catch + what upstream tasks will send
    load    u = r · busy seconds per record

`rate` is what arrives, rho the target utilization, T_catch the time in which a backlog must be worked off, T_move how long a move
stops or slows the task. A sub-topology behind a repartition topic gets what its upstream *demands* times its measured ratio: once
upstream is fast enough, all of that arrives. It has its reserve in it already, so rho is not applied twice.
"""

from __future__ import annotations

from collections.abc import Mapping

from streamfleet_platform.scaling.measures import Measures, Task


def demands(measures: Measures, *, target: float, move_seconds: float, catch_up_seconds: float) -> dict[Task, float]:
    """Records per second, by task."""
    found: dict[Task, float] = {}
    for content_id in _upstream_first(measures):
        arriving = sum(
            ratio
            * sum(
                _at_most_a_slot(measures, task, demand) for task, demand in found.items() if task.content_id == upstream
            )
            for upstream, ratio in measures.sub_topologies[content_id].fed_by.items()
        )
        shares = _shares(measures, content_id)
        for task, share in shares.items():
            own = measures.tasks[task]
            rate = own.records_per_second
            found[task] = rate / target + (rate * move_seconds + own.lag_records) / catch_up_seconds + arriving * share
    return found


def loads(measures: Measures, demand: Mapping[Task, float]) -> dict[Task, float]:
    """Slots that each task needs for itself. More than one cannot be had: a task is never split."""
    return {task: rate * measures.tasks[task].busy_seconds_per_record for task, rate in demand.items()}


def utilizations(measures: Measures) -> dict[Task, float]:
    """What each task takes of a slot now, to keep up and no more."""
    return {
        task: (own.records_per_second + own.relayed_per_second) * own.busy_seconds_per_record
        for task, own in measures.tasks.items()
    }


def _at_most_a_slot(measures: Measures, task: Task, demand: float) -> float:
    """A task that is too much for a slot passes on what a slot can process."""
    busy = measures.tasks[task].busy_seconds_per_record
    return min(demand, 1 / busy) if busy else demand


def _shares(measures: Measures, content_id: str) -> dict[Task, float]:
    """How what arrives through repartition topics falls on the tasks: as it does now, or evenly if nothing does."""
    tasks = {task: own.relayed_per_second for task, own in measures.tasks.items() if task.content_id == content_id}
    total = sum(tasks.values())
    return {task: rate / total if total else 1 / len(tasks) for task, rate in tasks.items()}


def _upstream_first(measures: Measures) -> list[str]:
    """Who writes before who reads. In a circle somebody is first; repartition topics make none, the engine sees to that."""
    order: list[str] = []
    waiting = sorted(measures.sub_topologies)
    while waiting:
        ready = [name for name in waiting if not set(measures.sub_topologies[name].fed_by) & set(waiting) - {name}]
        order += ready or waiting[:1]
        waiting = [name for name in waiting if name not in order]
    return order
