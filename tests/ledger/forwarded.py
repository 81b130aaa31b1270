"""At least once, between the sub-topologies: is everything there that the first must pass on, and is every repeat explained?

Pure; called by the checker with the records of a topic between them, as they lie in the broker's log. For each input record the
first sub-topology forwards two: to the repartition topic the tag it leaves and the tag it enters, and as answers of the foreign-key
join one for each account of its key. They go to any partitions, and mix there with those of other tasks. So a partition of such a
topic has only some of an input partition's, and what stints.py says about beginnings holds in one direction:

    lost                no attempt at a record forwarded both
    resumed elsewhere   a run begins before the offset that was committed when it began
    needless repeat     a run begins before the end of another one, and no fault lies between the two

A run is what one producer forwarded of an input partition without going back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.ledger.oracle import SHOWN, Anomaly
from tests.ledger.stints import (
    Appended,
    Commit,
    Disturbance,
    Repeats,
    Stint,
    check_reasons,
    committed_before,
    held_up_since,
)


@dataclass(frozen=True)
class Forwarded:
    """A record of a topic between the sub-topologies."""

    tag: int
    """Or the number of an account. The second that a record forwards has the next number."""
    record_id: int
    """Of the input record it follows from."""
    appended: Appended
    """With the offset of that input record."""


def check_complete(where: str, record_ids: Iterable[int], forwarded: Iterable[Forwarded]) -> list[Anomaly]:
    """`forwarded` of all partitions. Numbers go up by one: a record leaves the tag before the one it enters."""
    tags: dict[int, set[tuple[int, int]]] = defaultdict(set)
    for each in forwarded:
        tags[each.record_id].add((each.appended.producer_id, each.tag))
    missing = sorted(
        record_id
        for record_id in record_ids
        if not any((producer, tag + 1) in tags[record_id] for producer, tag in tags[record_id])
    )
    return [Anomaly("lost", where, f"{len(missing)} records, ids {missing[:SHOWN]}")] if missing else []


def check_forwarded(
    where: str, forwarded: Sequence[Forwarded], commits: Sequence[Commit], disturbances: Sequence[Disturbance]
) -> Repeats:
    """`forwarded` of one input partition to one partition, in the order of the log; `commits` of that input partition."""
    runs = _runs(forwarded)
    anomalies = check_reasons(where, runs, disturbances)
    for run in runs:
        committed = committed_before(commits, held_up_since(run.began_ms, disturbances))
        if run.first < committed:
            detail = f"a run began at offset {run.first}, committed was {committed}"
            anomalies.append(Anomaly("resumed elsewhere", where, detail))
    repeats = len(forwarded) - len({(each.record_id, each.tag) for each in forwarded})
    return Repeats(repeats, len(forwarded), len(runs), anomalies=anomalies)


def _runs(forwarded: Iterable[Forwarded]) -> list[Stint]:
    under_way: dict[int, list[Forwarded]] = {}
    found: list[list[Forwarded]] = []
    for each in forwarded:
        run = under_way.get(each.appended.producer_id)
        if run is None or _goes_back(run, each):
            run = under_way[each.appended.producer_id] = []
            found.append(run)
        run.append(each)
    return [Stint(run[0].appended.producer_id, [each.appended for each in run]) for run in found]


def _goes_back(run: Sequence[Forwarded], later: Forwarded) -> bool:
    """The two that follow from one record may be here one after the other, the same may not."""
    last = run[-1]
    if later.record_id == last.record_id:
        return later.tag <= last.tag
    return later.appended.input_offset <= last.appended.input_offset
