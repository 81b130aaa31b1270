"""The ledger's input: every key `lo-hi` carries each integer from lo to hi once; what must come out is known in closed form.

Called by the run (to write the input), the fold and the oracle (to say what must come of it). Pure: a spec makes the same
records every time.
Per key the integers are shuffled in windows of ten; the timestamp follows the integer, so records are out of order by as much.
Each record has a global id and its key's sequence number in its headers, which the app passes on.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from streamfleet.partitioner import partition_for

SHUFFLE_DISTANCE = 10
STEP_MS = 100
"""Event time between two neighbouring integers of a key."""
WINDOW_MS = 50 * STEP_MS
GRACE_MS = WINDOW_MS
"""More than the shuffle can displace: 2 x SHUFFLE_DISTANCE x STEP_MS. No record is ever late."""
FIRST_FLUSH_KEY = 900_000
PAIR_PERIOD = 50
LEFT_PLACES = frozenset({0, 2, 4, 6, 8, 25, 26, 27})
RIGHT_PLACES = frozenset({1, 3, 5, 7, 9, 38, 39})
"""Of every PAIR_PERIOD integers of a key, by their remainder, those are in the left and in the right stream of the stream-stream
join: 0 to 9 find partners, 25 to 27 and 38, 39 have none within reach.
"""
PAIR_REACH_MS = SHUFFLE_DISTANCE * STEP_MS
"""How far apart partners may be. As much as the shuffle displaces a record: one whose reach has passed before it comes would be
said at once to have no partner, also while one can still come.
"""
ACCOUNTS_PER_KEY = 2
CLOSED_ACCOUNT = "closed/1"


@dataclass(frozen=True)
class LedgerSpec:
    """How much input, from which seed."""

    seed: int
    keys: int = 20
    records_per_key: int = 500
    partitions: int = 4
    base_timestamp: int = 1_700_000_000_000
    """Event time of the first integer of every key. A run takes the present: brokers delete what is old."""


@dataclass(frozen=True)
class LedgerRecord:
    key: str
    value: int
    sequence: int
    record_id: int
    timestamp: int
    partition: int


@dataclass(frozen=True)
class ClosedForm:
    """What is known about a key without looking at any record."""

    minimum: int
    maximum: int
    total: int
    count: int
    average: float


def key_of(low: int, high: int) -> str:
    return f"{low}-{high}"


def closed_form(key: str) -> ClosedForm:
    low, high = map(int, key.split("-"))
    count = high - low + 1
    return ClosedForm(low, high, (low + high) * count // 2, count, (low + high) / 2)


def limit_of(key: str) -> int:
    """What the table of the stream-table join says about a key."""
    return closed_form(key).maximum


def is_left(value: int) -> bool:
    """Flush records are, too: their time closes what waits."""
    return value % PAIR_PERIOD in LEFT_PLACES or value >= FIRST_FLUSH_KEY


def is_right(value: int) -> bool:
    return value % PAIR_PERIOD in RIGHT_PLACES and value < FIRST_FLUSH_KEY


def accounts_of(key: str) -> list[str]:
    """Rows of the table that point to this key: the primary side of the foreign-key join."""
    return [f"{key}/{number}" for number in range(ACCOUNTS_PER_KEY)]


def account_number(account: str) -> int:
    return int(account.rpartition("/")[2])


def has_moved(account: str) -> bool:
    """Whether it does not point any more to where it did first."""
    return account_number(account) == ACCOUNTS_PER_KEY - 1


def account_updates(spec: LedgerSpec) -> Iterator[tuple[str, str | None]]:
    """The table, as it is written: the last account of each key points to another key first, and one that is opened is closed."""
    keys = all_keys(spec)
    for key, neighbour in zip(keys, [*keys[1:], keys[0]], strict=True):
        *others, last = accounts_of(key)
        yield last, neighbour
        yield from ((account, key) for account in others)
        yield last, key
    yield CLOSED_ACCOUNT, keys[0]
    yield CLOSED_ACCOUNT, None


def ordinary_keys(spec: LedgerSpec) -> list[str]:
    return [key_of(1000 * n, 1000 * n + spec.records_per_key - 1) for n in range(1, spec.keys + 1)]


def flush_keys(spec: LedgerSpec) -> list[str]:
    """One key per partition, with one integer each: its record is the last of the partition and closes every window."""
    found: dict[int, str] = {}
    low = FIRST_FLUSH_KEY
    while len(found) < spec.partitions:
        key = key_of(low, low)
        found.setdefault(partition_for(key.encode(), spec.partitions), key)
        low += 1
    return [found[partition] for partition in range(spec.partitions)]


def all_keys(spec: LedgerSpec) -> list[str]:
    return ordinary_keys(spec) + flush_keys(spec)


def generate(spec: LedgerSpec) -> Iterator[LedgerRecord]:
    """All records in the order in which they are to be written; flush records last."""
    rng = random.Random(spec.seed)
    values = {key: _shuffled(closed_form(key), rng) for key in ordinary_keys(spec)}
    record_id = 0
    for sequence in range(spec.records_per_key):
        for key in values:
            value = values[key][sequence]
            step = value - closed_form(key).minimum
            yield _record(spec, key, value, sequence, record_id, step)
            record_id += 1
    after_all_windows = spec.records_per_key + (WINDOW_MS + GRACE_MS) // STEP_MS + 1
    for key in flush_keys(spec):
        yield _record(spec, key, closed_form(key).minimum, 0, record_id, after_all_windows)
        record_id += 1


def _record(spec: LedgerSpec, key: str, value: int, sequence: int, record_id: int, step: int) -> LedgerRecord:
    timestamp = spec.base_timestamp + step * STEP_MS
    return LedgerRecord(key, value, sequence, record_id, timestamp, partition_for(key.encode(), spec.partitions))


def _shuffled(form: ClosedForm, rng: random.Random) -> list[int]:
    values = list(range(form.minimum, form.maximum + 1))
    for start in range(0, len(values), SHUFFLE_DISTANCE):
        window = values[start : start + SHUFFLE_DISTANCE]
        rng.shuffle(window)
        values[start : start + SHUFFLE_DISTANCE] = window
    return values
