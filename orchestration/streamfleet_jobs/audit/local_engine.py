"""The local engine: confluent-kafka, Arrow and numpy in this process, no Java. One partition is in memory at a time.

Quick enough for some ten million records; the oracle of the Spark engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from streamfleet_jobs.audit.engine import Moment, Ranges
from streamfleet_jobs.audit.facts import BINS, FITS, HOT_KEYS, NAMED_KEYS, HotKey, PartitionFacts, Question, bin_width
from streamfleet_jobs.audit.spec import SUFFIXES, AuditSpec, StoreSpec
from streamfleet_jobs.columns.binary import Int64s, binary_values
from streamfleet_jobs.columns.key_times import key_times
from streamfleet_jobs.columns.partitioners import PARTITIONERS
from streamfleet_jobs.columns.row_digest import BUCKETS, Digest, bucket_of, digest_of
from streamfleet_jobs.columns.slim import PARQUET_OPTIONS, SLIM
from streamfleet_jobs.kafka.records import read_slim
from streamfleet_jobs.kafka.topics import TopicPin
from streamfleet_jobs.progress import Bar, Report

Bools = npt.NDArray[np.bool_]


class LocalEngine:
    def __init__(self, spec: AuditSpec, report: Report) -> None:
        self._spec = spec
        self._report = report

    def land(self, store: StoreSpec, pin: TopicPin, landed: Path) -> int:
        landed.mkdir(parents=True, exist_ok=True)
        total = sum(partition.end - partition.start for partition in pin.partitions.values())
        bar, done, records = Bar(f"reading {pin.name}", total, self._report), 0, 0
        for number, partition in pin.partitions.items():
            final = landed / f"p{number:05d}.parquet"
            if not final.exists():
                half = final.with_suffix(".tmp")
                with pq.ParquetWriter(half, SLIM, **PARQUET_OPTIONS) as writer:
                    for piece in read_slim(
                        self._spec.bootstrap_servers,
                        self._spec.client_config,
                        (pin.name, number),
                        (partition.start, partition.end),
                        timestamps=store.timestamps,
                    ):
                        writer.write_batch(piece)
                        bar.at(done + piece.column("offset")[-1].as_py() - partition.start)
                half.replace(final)
            done += partition.end - partition.start
            records += pq.read_metadata(final).num_rows
        bar.close(records)
        return records

    def facts(self, landed: Path, questions: Mapping[int, Question]) -> dict[int, PartitionFacts]:
        columns = ["offset", "key", "vlen"]
        return {
            number: partition_facts(number, _table(landed, number, columns), question)
            for number, question in questions.items()
        }

    def tombstones_in(self, landed: Path, ranges: Mapping[int, Ranges]) -> dict[int, int]:
        found = {}
        for number, wanted in ranges.items():
            table = _table(landed, number, ["offset", "vlen"])
            offsets = table.filter(pc.field("vlen").is_null())["offset"].to_numpy()
            found[number] = int(in_ranges(offsets, wanted).sum())
        return found

    def last_gaps(self, landed: Path) -> dict[int, int]:
        found = {}
        for file in sorted(landed.glob("p[0-9]*.parquet")):
            offsets = pq.read_table(file, columns=["offset"])["offset"].to_numpy()
            gaps = np.flatnonzero(np.diff(offsets) > 1)
            if len(gaps):
                found[int(file.stem[1:])] = int(offsets[gaps[-1] + 1])
        return found

    def digests(self, landed: Path, store: StoreSpec, moments: Mapping[int, Moment]) -> dict[int, Digest]:
        found = {}
        for number, moment in moments.items():
            keys, hashes = _as_of(_table(landed, number, ["offset", "key", "h"]), store, moment)
            buckets = np.array([bucket_of(key) for key in keys.to_pylist()], np.int64)
            found[number] = digest_of(buckets, hashes)
        return found

    def rows(
        self, landed: Path, store: StoreSpec, partition: int, buckets: Sequence[int], moment: Moment
    ) -> dict[bytes, int]:
        wanted = np.zeros(BUCKETS, np.bool_)
        wanted[list(buckets)] = True
        keys, hashes = _as_of(_table(landed, partition, ["offset", "key", "h"]), store, moment)
        pairs = zip(keys.to_pylist(), hashes.tolist(), strict=True)
        return {key: hashed for key, hashed in pairs if wanted[bucket_of(key)]}


def _table(landed: Path, number: int, columns: list[str]) -> Any:
    """The rows of a partition, in the order of offsets."""
    return pq.read_table(landed / f"p{number:05d}.parquet", columns=columns)


class _Keyed:
    """Keys as numbers, and which record is the first and the last of each."""

    def __init__(self, table: Any) -> None:
        wide = table["key"].cast(pa.large_binary())  # one array of them may be larger than 2 GB
        encoded = wide.combine_chunks().dictionary_encode()
        self.keys: Any = encoded.dictionary
        self.codes: Int64s = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        count = len(self.codes)
        self.last = np.zeros(len(self.keys), np.int64)
        self.last[self.codes] = np.arange(count)
        self.first = np.zeros(len(self.keys), np.int64)
        self.first[self.codes[::-1]] = np.arange(count)[::-1]

    @property
    def is_last(self) -> Bools:
        marks = np.zeros(len(self.codes), np.bool_)
        marks[self.last] = True
        return marks


def partition_facts(number: int, table: Any, question: Question) -> PartitionFacts:
    """`table` has offset, key and vlen, in the order of offsets."""
    null_keys = table["key"].null_count
    keyed_table = table.filter(pc.field("key").is_valid()) if null_keys else table
    keyed = _Keyed(keyed_table)
    offsets: Int64s = keyed_table["offset"].to_numpy()
    is_tombstone: Bools = pc.is_null(keyed_table["vlen"]).to_numpy(zero_copy_only=False)
    lengths = pc.fill_null(keyed_table["vlen"], 0).to_numpy().astype(np.int64)
    sizes = lengths + binary_values(keyed.keys).lengths[keyed.codes] if len(offsets) else lengths
    is_last = keyed.is_last
    is_closed = offsets < question.closed_end
    repeated = np.ones(len(offsets), np.bool_)
    repeated[keyed.first] = False
    repeats = offsets[repeated]
    bins = (offsets - question.start) // bin_width(question.start, question.end)
    return PartitionFacts(
        partition=number,
        records=len(offsets) + null_keys,
        tombstones=int(is_tombstone.sum()),
        null_keys=null_keys,
        keys=len(keyed.keys),
        live_keys=int((is_last & ~is_tombstone).sum()),
        total_bytes=int(sizes.sum()),
        latest_bytes=int(sizes[is_last].sum()),
        closed_bytes=int(sizes[is_closed].sum()),
        closed_superseded_bytes=_closed_superseded(keyed, sizes, is_closed),
        first_repeat=int(repeats[0]) if len(repeats) else None,
        **_placement(keyed.keys, number, question),
        hot_keys=_hot_keys(keyed),
        live_bins=_binned(bins[is_last & ~is_tombstone]),
        superseded_bins=_binned(bins[~is_last]),
        tombstone_bins=_binned(bins[is_last & is_tombstone]),
    )


def _closed_superseded(keyed: _Keyed, sizes: Int64s, is_closed: Bools) -> int:
    """Bytes of records that have a later one of their key in closed segments, too: those that compaction could remove now."""
    closed = np.flatnonzero(is_closed)
    last = np.full(len(keyed.keys), -1, np.int64)
    last[keyed.codes[closed]] = closed
    return int(sizes[closed].sum() - sizes[last[last >= 0]].sum())


def _placement(keys: Any, number: int, question: Question) -> dict[str, Any]:
    plain = binary_values(keys).shortened(question.suffix)
    places = {name: PARTITIONERS[name](plain, question.partitions) for name in FITS}
    wrong = np.flatnonzero(places[question.partitioner] != number)
    named = sorted(keys.take(pa.array(wrong)).to_pylist())[:NAMED_KEYS] if len(wrong) else []
    return {
        "fits": {name: int((place == number).sum()) for name, place in places.items()},
        "misplaced": len(wrong),
        "misplaced_keys": tuple(named),
        "misplaced_fits": {name: int((place[wrong] == number).sum()) for name, place in places.items()},
    }


def _hot_keys(keyed: _Keyed) -> tuple[HotKey, ...]:
    counts = np.bincount(keyed.codes, minlength=len(keyed.keys))
    if not len(counts):
        return ()
    least = np.sort(counts)[-HOT_KEYS:][0]
    candidates = np.flatnonzero(counts >= max(least, 2))  # a key with one record is not hot
    named = zip(keyed.keys.take(pa.array(candidates)).to_pylist(), counts[candidates].tolist(), strict=True)
    ordered = sorted(named, key=lambda pair: (-pair[1], pair[0]))
    return tuple(HotKey(key, records) for key, records in ordered[:HOT_KEYS])


def _binned(bins: Int64s) -> tuple[int, ...]:
    return tuple(np.bincount(bins, minlength=BINS).tolist())


def in_ranges(offsets: Int64s, ranges: Ranges) -> Bools:
    """Which offsets are in one of the ranges, which do not overlap."""
    ordered = sorted(ranges)
    firsts = np.array([first for first, _ in ordered], np.int64)
    lasts = np.array([last for _, last in ordered], np.int64)
    at = np.searchsorted(firsts, offsets, side="right") - 1
    inside: Bools = (at >= 0) & (offsets <= lasts[np.maximum(at, 0)]) if ordered else np.zeros(len(offsets), np.bool_)
    return inside


def _as_of(table: Any, store: StoreSpec, moment: Moment) -> tuple[Any, Int64s]:
    """The keys that are live as of a moment, and their hashes."""
    table = table.filter((pc.field("offset") <= moment.offset) & pc.field("key").is_valid())
    keyed = _Keyed(table)
    latest = table["h"].take(pa.array(keyed.last))
    keep: Bools = pc.is_valid(latest).to_numpy(zero_copy_only=False)
    suffix = SUFFIXES[store.key_format]
    if suffix and moment.oldest_ms is not None:
        keep = keep & (key_times(binary_values(keyed.keys), suffix) >= moment.oldest_ms)
    chosen = pa.array(np.flatnonzero(keep))
    return keyed.keys.take(chosen), latest.take(chosen).to_numpy().astype(np.int64)
