"""At least once: is every repeated record explained? Pure; called by the checker with what the broker's logs tell of one partition.

A stint is the work of one producer on a partition without a gap: input offsets in a row, as they lie in the echo topic. Records
are repeated when a stint begins before the end of an earlier one. Three rules bound how many those are:

    resumed elsewhere   a stint begins at the offset that was last committed when it began, neither before nor behind it
    commit overdue      within a stint nothing stays uncommitted for longer than MOST_UNCOMMITTED_MS, except while a fault lasts
    needless repeat     a stint begins before the end of another one only where a fault lies between the two

So a failure repeats the records since the last commit of the tasks that failed, and that commit is not long ago.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tests.ledger.oracle import SHOWN, Anomaly

MOST_UNCOMMITTED_MS = 2000
"""The commit interval is 100 ms; the rest is for a commit's own time on a machine that has other things to do."""
SESSION_MS = 6000
"""A rebalance waits for a member that is dead until its session has ended, and meanwhile nobody can commit."""
SETTLE_MS = 4000
"""For the rebalances that follow, and for what was under way when a process stopped."""
BROKER_RETURN_MS = 12_000
"""Until clients have found the broker again, and their group its members."""
IN_FLIGHT_MS = 1000
"""A request that a process sent before it was killed is still carried out."""


@dataclass(frozen=True)
class Appended:
    """A result of one input record, as it was appended to the log."""

    input_offset: int
    producer_id: int
    at_ms: int
    """By the broker's clock."""


@dataclass(frozen=True)
class Commit:
    offset: int
    """Of the next record to process."""
    at_ms: int


@dataclass(frozen=True)
class Disturbance:
    """A fault as it happened."""

    kind: str
    """kill, pause, leave or broker."""
    begin_ms: int
    end_ms: int

    @property
    def last_effect_ms(self) -> int:
        """Until when it can hold up commits and results."""
        if self.kind == "broker":
            return self.end_ms + BROKER_RETURN_MS
        session = SESSION_MS if self.kind in ("kill", "pause") else 0
        return max(self.end_ms, self.begin_ms + session) + SETTLE_MS


@dataclass(frozen=True)
class Stint:
    producer_id: int
    results: Sequence[Appended]

    @property
    def first(self) -> int:
        return self.results[0].input_offset

    @property
    def end(self) -> int:
        """The offset behind the last."""
        return self.results[-1].input_offset + 1

    @property
    def began_ms(self) -> int:
        return self.results[0].at_ms

    @property
    def ended_ms(self) -> int:
        return self.results[-1].at_ms


@dataclass(frozen=True)
class Repeats:
    """What was repeated, of one partition of an output or of many together."""

    repeated: int = 0
    results: int = 0
    stints: int = 0
    longest_uncommitted_ms: int = 0
    """Without the time that faults took."""
    anomalies: list[Anomaly] = field(default_factory=list)

    def __add__(self, other: Repeats) -> Repeats:
        return Repeats(
            self.repeated + other.repeated,
            self.results + other.results,
            self.stints + other.stints,
            max(self.longest_uncommitted_ms, other.longest_uncommitted_ms),
            self.anomalies + other.anomalies,
        )

    def __str__(self) -> str:
        return (
            f"{self.repeated} of {self.results} results are repeats, in {self.stints} stints; "
            f"outside of faults nothing stayed uncommitted for longer than {self.longest_uncommitted_ms} ms"
        )


def stints_of(appended: Iterable[Appended]) -> list[Stint]:
    """`appended` in the order of the log; stints in the order of their beginnings."""
    under_way: dict[int, list[Appended]] = {}
    found: list[list[Appended]] = []
    for result in appended:
        results = under_way.get(result.producer_id)
        if results is None or result.input_offset != results[-1].input_offset + 1:
            results = under_way[result.producer_id] = []
            found.append(results)
        results.append(result)
    return [Stint(results[0].producer_id, results) for results in found]


def check_repeats(
    where: str, appended: Sequence[Appended], commits: Sequence[Commit], disturbances: Sequence[Disturbance]
) -> Repeats:
    """`commits` in the order of time."""
    stints = stints_of(appended)
    anomalies = _check_commits_advance(where, commits)
    anomalies += _check_beginnings(where, stints, commits, disturbances)
    anomalies += check_reasons(where, stints, disturbances)
    longest = 0
    for stint in stints:
        uncommitted_ms, at = _longest_uncommitted(stint, commits, disturbances)
        longest = max(longest, uncommitted_ms)
        if uncommitted_ms > MOST_UNCOMMITTED_MS:
            detail = f"nothing was committed for {uncommitted_ms} ms of work until offset {at}, and no fault kept it"
            anomalies.append(Anomaly("commit overdue", where, detail))
    repeats = len(appended) - len({result.input_offset for result in appended})
    return Repeats(repeats, len(appended), len(stints), longest, anomalies)


def check_all_processed(where: str, appended: Iterable[Appended], records: int) -> list[Anomaly]:
    """`records` lie in the input, the first at offset 0: each must have a result."""
    missing = sorted(set(range(records)) - {result.input_offset for result in appended})
    return [Anomaly("lost", where, f"{len(missing)} records, offsets {missing[:SHOWN]}")] if missing else []


def _check_commits_advance(where: str, commits: Sequence[Commit]) -> list[Anomaly]:
    return [
        Anomaly("commit went back", where, f"from {before} to {after}")
        for before, after in pairwise(commits)
        if after.offset < before.offset
    ]


def _check_beginnings(
    where: str, stints: Iterable[Stint], commits: Sequence[Commit], disturbances: Sequence[Disturbance]
) -> list[Anomaly]:
    anomalies = []
    for stint in stints:
        since = held_up_since(stint.began_ms, disturbances)
        newest = committed_before(commits, since)
        # What a fault holds up may have been begun before later commits; a commit in the same millisecond may be its own.
        allowed = {newest} | {each.offset for each in commits if since <= each.at_ms <= stint.began_ms}
        if stint.first not in allowed:
            detail = f"a stint began at offset {stint.first}, committed was {_newest(commits, stint.began_ms)}"
            anomalies.append(Anomaly("resumed elsewhere", where, detail))
    return anomalies


def check_reasons(where: str, stints: Iterable[Stint], disturbances: Sequence[Disturbance]) -> list[Anomaly]:
    anomalies = []
    furthest: Stint | None = None
    for stint in stints:
        if furthest is not None and stint.first < furthest.end:
            moments = sorted((furthest.ended_ms, stint.began_ms))
            if not _is_disturbed(moments[0] - IN_FLIGHT_MS, moments[1], disturbances):
                detail = f"{furthest.end - stint.first} records before offset {furthest.end}, and no fault explains it"
                anomalies.append(Anomaly("needless repeat", where, detail))
        if furthest is None or stint.end > furthest.end:
            furthest = stint
    return anomalies


def _is_disturbed(since_ms: int, until_ms: int, disturbances: Iterable[Disturbance]) -> bool:
    """A worker that leaves commits first: it is no reason to repeat anything."""
    return any(
        each.begin_ms <= until_ms and each.last_effect_ms >= since_ms for each in disturbances if each.kind != "leave"
    )


def _longest_uncommitted(
    stint: Stint, commits: Sequence[Commit], disturbances: Sequence[Disturbance]
) -> tuple[int, int]:
    """The longest time between a result and a later one of the stint before which it was not committed, without the time that
    faults took; and the offset of that later one.
    """
    longest, at = 0, stint.first
    oldest = 0
    for number, result in enumerate(stint.results):
        committed = _newest(commits, result.at_ms)
        while oldest < number and stint.results[oldest].input_offset < committed:
            oldest += 1
        lasted = _undisturbed_ms(stint.results[oldest].at_ms, result.at_ms, disturbances)
        if lasted > longest:
            longest, at = lasted, result.input_offset
    return longest, at


def _newest(commits: Sequence[Commit], at_ms: int) -> int:
    """The offset committed at that time; 0 before the first commit."""
    number = bisect_right(commits, at_ms, key=lambda each: each.at_ms)
    return commits[number - 1].offset if number else 0


def committed_before(commits: Sequence[Commit], at_ms: int) -> int:
    return _newest(commits, at_ms - 1)


def held_up_since(at_ms: int, disturbances: Iterable[Disturbance]) -> int:
    """Since when results that were appended at that time can have been on their way: a stopped process, or one without its broker,
    sends them when it can. One that was killed does not.
    """
    since = at_ms
    for each in sorted(disturbances, key=lambda one: one.last_effect_ms, reverse=True):
        if each.kind in ("pause", "broker") and each.begin_ms <= since <= each.last_effect_ms:
            since = each.begin_ms
    return since


def _undisturbed_ms(since_ms: int, until_ms: int, disturbances: Iterable[Disturbance]) -> int:
    """How much of that time no fault was under way."""
    left, reached = 0, since_ms
    for each in sorted(disturbances, key=lambda one: one.begin_ms):
        if each.begin_ms >= until_ms:
            break
        left += max(0, each.begin_ms - reached)
        reached = max(reached, each.last_effect_ms)
    return left + max(0, until_ms - reached)
