"""Random changelogs as hypothesis strategies, their slim copy on disk, and what they add up to by plain Python."""

import zlib
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from streamfleet.partitioner import partition_for
from streamfleet_jobs.audit.facts import Question
from streamfleet_jobs.columns.row_digest import row_hashes
from streamfleet_jobs.columns.slim import SLIM

PARTITIONS = 3
KEYS = st.one_of(st.sampled_from([b"a", b"b", b"cc", b"d" * 20, b""]), st.binary(min_size=1, max_size=30))
OWN = -1
"""Instead of a partition: the one where the key belongs."""


def records(keys, largest):
    return st.lists(
        st.tuples(
            st.integers(OWN, PARTITIONS - 1),
            st.integers(1, 4),  # how far the offset moves on
            keys,
            st.one_of(st.none(), st.binary(max_size=6)),
            st.integers(0, 10),
        ),
        max_size=largest,
    )


LOGS = st.tuples(records(KEYS, 60), st.integers(0, 3))
"""Records, and how many of them have no key."""

SUFFIXED = st.builds(
    lambda key, time, sequence: key + time.to_bytes(8, "big") + sequence.to_bytes(4, "big"),
    KEYS,
    st.integers(0, 5),
    st.integers(0, 1),
)
WINDOWED_LOGS = st.tuples(records(st.one_of(SUFFIXED, SUFFIXED, KEYS), 120), st.integers(0, 3))
"""Most keys have a window behind them."""


def rows_of(log):
    """(partition, offset, ts, key, value) in the order of offsets, by partition."""
    records, nulls = log
    at = dict.fromkeys(range(PARTITIONS), 0)
    rows = {number: [] for number in at}
    for n, (place, step, key, value, ts) in enumerate(records):
        number = partition_for(key, PARTITIONS) if place == OWN else place
        at[number] += step
        rows[number].append((number, at[number], ts, None if n < nulls else key, value))
    return rows


def land(directory, rows):
    directory.mkdir(parents=True)
    for number, records in rows.items():
        columns = list(zip(*records, strict=True)) or [[], [], [], [], []]
        hashes = row_hashes(columns[3], columns[4], None)
        lengths = [None if value is None else len(value) for value in columns[4]]
        arrays = [columns[0], columns[1], columns[2], columns[3], lengths, hashes]
        table = pa.table([pa.array(a, field.type) for a, field in zip(arrays, SLIM, strict=True)], schema=SLIM)
        pq.write_table(table, directory / f"p{number:05d}.parquet")


def questions(rows, suffix=0, partitioner="murmur2"):
    found = {}
    for number, records in rows.items():
        end = records[-1][1] + 1 if records else 0
        found[number] = Question(0, end, end // 2, PARTITIONS, suffix, partitioner)
    return found


def brute_force(records, question, number):
    """The numbers of PartitionFacts, the slow way."""
    keyed = [r for r in records if r[3] is not None]
    weigh = lambda r: len(r[3]) + len(r[4] or b"")
    last = {r[3]: r for r in keyed}
    closed = [r for r in keyed if r[1] < question.closed_end]
    last_closed = {r[3]: r for r in closed}
    seen, first_repeat = set(), None
    for r in keyed:
        if r[3] in seen and first_repeat is None:
            first_repeat = r[1]
        seen.add(r[3])
    plain = lambda key: key[: max(0, len(key) - question.suffix)]
    counts = Counter(r[3] for r in keyed)
    hot = sorted(((k, n) for k, n in counts.items() if n > 1), key=lambda p: (-p[1], p[0]))[:5]
    places = {
        "murmur2": lambda key: partition_for(key, question.partitions),
        "crc32": lambda key: zlib.crc32(key) % question.partitions,
        "fnv1a": lambda key: abs(_signed(_fnv1a(key))) % question.partitions,
    }
    wrong = sorted(key for key in last if places[question.partitioner](plain(key)) != number)
    return {
        "records": len(records),
        "null_keys": len(records) - len(keyed),
        "tombstones": sum(r[4] is None for r in keyed),
        "keys": len(last),
        "live_keys": sum(r[4] is not None for r in last.values()),
        "total_bytes": sum(map(weigh, keyed)),
        "latest_bytes": sum(map(weigh, last.values())),
        "closed_bytes": sum(map(weigh, closed)),
        "closed_superseded_bytes": sum(map(weigh, closed)) - sum(map(weigh, last_closed.values())),
        "first_repeat": first_repeat,
        "misplaced": len(wrong),
        "misplaced_keys": tuple(wrong[:10]),
        "fits": {name: sum(place(plain(key)) == number for key in last) for name, place in places.items()},
        "misplaced_fits": {name: sum(place(plain(key)) == number for key in wrong) for name, place in places.items()},
        "hot_keys": hot,
        "superseded": len(keyed) - len(last),
    }


def _fnv1a(key):
    found = 0x811C9DC5
    for byte in key:
        found = (found ^ byte) * 0x01000193 & 0xFFFFFFFF
    return found


def _signed(number):
    return number - (1 << 32) if number >= 1 << 31 else number
