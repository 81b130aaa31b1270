"""The Spark engine: the same facts over DataFrames, for topics that do not fit one machine. Plain and over Spark Connect.

Grouping and counting are Spark's own; hashes and placement are the columns package's, in Arrow functions. The copy is read once
per question, never the topic again.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 -- as everybody calls it

from streamfleet_jobs.audit.engine import Moment, Ranges
from streamfleet_jobs.audit.facts import BINS, FITS, HOT_KEYS, NAMED_KEYS, HotKey, PartitionFacts, Question, bin_width
from streamfleet_jobs.audit.spec import SUFFIXES, AuditSpec, StoreSpec
from streamfleet_jobs.columns.binary import binary_values
from streamfleet_jobs.columns.key_times import key_times
from streamfleet_jobs.columns.partitioners import PARTITIONERS
from streamfleet_jobs.columns.row_digest import BUCKETS, BucketDigest, Digest, row_hashes
from streamfleet_jobs.columns.slim import SLIM_DDL
from streamfleet_jobs.errors import UnavailableError
from streamfleet_jobs.kafka.topics import TopicPin
from streamfleet_jobs.progress import Report
from streamfleet_jobs.spark.arrow_function import arrow_function

_POLL_TIMEOUT_MS = "20000"
_MASK = 2**64 - 1


class SparkEngine:
    def __init__(self, spec: AuditSpec, session: SparkSession, report: Report) -> None:
        self._spec = spec
        self._session = session
        self._report = report

    # landing

    def land(self, store: StoreSpec, pin: TopicPin, landed: Path) -> int:
        if not (landed / "_SUCCESS").exists():
            shutil.rmtree(landed, ignore_errors=True)
            self._report(f"reading {pin.name} with Spark")
            try:
                self._slim(store, self._read(pin)).write.parquet(str(landed), compression="zstd")
            except PySparkException as error:
                raise UnavailableError(
                    f"{pin.name} cannot be read to its pinned end: {str(error).splitlines()[0][:300]}",
                    hint="if records were deleted meanwhile, run a new audit; otherwise run this one again",
                ) from error
        records = self._landed(landed).count()
        self._report(f"reading {pin.name}: done, {records:,}")
        return records

    def _read(self, pin: TopicPin) -> DataFrame:
        def offsets(which: str) -> str:
            return json.dumps({pin.name: {str(n): getattr(p, which) for n, p in pin.partitions.items()}})

        deletes = "delete" in pin.configs.get("cleanup.policy", "")
        reader = self._session.read.format("kafka").options(
            subscribe=pin.name,
            startingOffsets=offsets("start"),
            endingOffsets=offsets("end"),
            failOnDataLoss=str(not deletes).lower(),  # retention may delete between pin and read
        )
        reader = reader.option("kafka.bootstrap.servers", self._spec.bootstrap_servers)
        reader = reader.option("kafka.isolation.level", "read_committed")
        reader = reader.option("kafkaConsumer.pollTimeoutMs", _POLL_TIMEOUT_MS)
        for name, value in self._spec.java_client_config.items():
            reader = reader.option(f"kafka.{name}", value)
        return reader.load()

    def _slim(self, store: StoreSpec, records: DataFrame) -> DataFrame:
        stamped = store.timestamps

        @arrow_function("long")
        def hashes(keys: pa.Array, values: pa.Array, stamps: pa.Array) -> pa.Array:
            times = stamps.to_pylist() if stamped else None
            return pa.array(row_hashes(keys.to_pylist(), values.to_pylist(), times), pa.int64())

        millis = F.unix_millis("timestamp")
        return records.select(
            "partition",
            "offset",
            millis.alias("ts"),
            "key",
            F.octet_length("value").alias("vlen"),
            hashes("key", "value", millis).alias("h"),
        )

    def _landed(self, landed: Path) -> DataFrame:
        return self._session.read.schema(SLIM_DDL).parquet(str(landed))

    # facts

    def facts(self, landed: Path, questions: Mapping[int, Question]) -> dict[int, PartitionFacts]:
        slim = self._landed(landed).where(F.col("partition").isin(*questions))
        sized = _with_question(self._session, slim, questions)
        per_key = _per_key(sized)
        records = {row["partition"]: row.asDict() for row in _per_record(sized, per_key).collect()}
        keys = {row["partition"]: row.asDict() for row in _per_partition(per_key, questions).collect()}
        hot = _named(_ranked(per_key.where("n > 1"), [F.desc("n"), F.asc("key")], HOT_KEYS))
        wrong = _named(_ranked(_misplaced(per_key, questions), [F.asc("key")], NAMED_KEYS))
        bins = _bins(sized, per_key)
        return {
            number: _facts(
                question.partitioner, number, (records.get(number, {}), keys.get(number, {})), hot, wrong, bins
            )
            for number, question in questions.items()
        }

    def tombstones_in(self, landed: Path, ranges: Mapping[int, Ranges]) -> dict[int, int]:
        found = dict.fromkeys(ranges, 0)
        pieces = [(n, first, last) for n, wanted in ranges.items() for first, last in wanted]
        if pieces:
            wanted = self._session.createDataFrame(pieces, "partition int, first long, last long")
            dead = self._landed(landed).where("vlen is null").select("partition", "offset")
            joined = dead.join(F.broadcast(wanted), "partition").where("offset between first and last")
            found |= {
                row["partition"]: row["n"] for row in joined.groupBy("partition").agg(F.count("*").alias("n")).collect()
            }
        return found

    def last_gaps(self, landed: Path) -> dict[int, int]:
        in_order = Window.partitionBy("partition").orderBy("offset")
        steps = self._landed(landed).select("partition", "offset", F.lag("offset").over(in_order).alias("before"))
        gaps = steps.where("offset > before + 1").groupBy("partition").agg(F.max("offset").alias("after"))
        return {row["partition"]: row["after"] for row in gaps.collect()}

    # equivalence

    def digests(self, landed: Path, store: StoreSpec, moments: Mapping[int, Moment]) -> dict[int, Digest]:
        rows = self._as_of(landed, store, moments).groupBy("partition", "bucket")
        sums = rows.agg(
            F.count("*").alias("n"),
            F.bit_xor("h").alias("x"),
            F.sum(F.col("h").cast("decimal(20,0)")).alias("s"),  # a sum of longs would overflow, and say so
        )
        found: dict[int, Digest] = {number: {} for number in moments}
        for row in sums.collect():
            digest = BucketDigest(row["n"], row["x"] & _MASK, int(row["s"]) & _MASK)
            found[row["partition"]][row["bucket"]] = digest
        return found

    def rows(
        self, landed: Path, store: StoreSpec, partition: int, buckets: Sequence[int], moment: Moment
    ) -> dict[bytes, int]:
        rows = self._as_of(landed, store, {partition: moment}).where(F.col("bucket").isin(*buckets))
        return {bytes(row["key"]): row["h"] for row in rows.select("key", "h").collect()}

    def _as_of(self, landed: Path, store: StoreSpec, moments: Mapping[int, Moment]) -> DataFrame:
        pieces = [(n, moment.offset, moment.oldest_ms) for n, moment in moments.items()]
        until = self._session.createDataFrame(pieces, "partition int, until long, oldest long")
        slim = self._landed(landed).where("key is not null").join(F.broadcast(until), "partition")
        latest = (
            slim.where("offset <= until")
            .groupBy("partition", "key")
            .agg(F.max_by("h", "offset").alias("h"), F.first("oldest").alias("oldest"))
            .where("h is not null")
        )
        suffix = SUFFIXES[store.key_format]
        if suffix:

            @arrow_function("long")
            def times(keys: pa.Array) -> pa.Array:
                return pa.array(key_times(binary_values(keys), suffix))

            latest = latest.where(F.col("oldest").isNull() | (times("key") >= F.col("oldest")))
        return latest.withColumn("bucket", F.crc32("key").bitwiseAND(F.lit(BUCKETS - 1)).cast("int"))


def _with_question(session: SparkSession, slim: DataFrame, questions: Mapping[int, Question]) -> DataFrame:
    asked = [(n, q.start, bin_width(q.start, q.end), q.closed_end) for n, q in questions.items()]
    table = session.createDataFrame(asked, "partition int, start long, width long, closed_end long")
    size = F.coalesce("vlen", F.lit(0)).cast("long") + F.coalesce(F.octet_length("key"), F.lit(0))
    return slim.withColumn("size", size).join(F.broadcast(table), "partition")


def _per_key(sized: DataFrame) -> DataFrame:
    keyed = sized.where("key is not null")
    return keyed.groupBy("partition", "key").agg(
        F.count("*").alias("n"),
        F.min("offset").alias("first"),
        F.max("offset").alias("last"),
        F.max(F.when(F.col("offset") < F.col("closed_end"), F.col("offset"))).alias("last_closed"),
        F.max_by("size", "offset").alias("last_size"),
        F.max_by(F.col("vlen").isNull(), "offset").alias("is_dead"),
    )


def _per_record(sized: DataFrame, per_key: DataFrame) -> DataFrame:
    def total(value: Column) -> Column:
        return F.coalesce(F.sum(value), F.lit(0)).cast("long")

    joined = sized.join(per_key.select("partition", "key", "first", "last_closed"), ["partition", "key"], "left")
    closed = F.col("offset") < F.col("closed_end")
    is_keyed = F.col("key").isNotNull()
    return joined.groupBy("partition").agg(
        F.count("*").alias("records"),
        F.count_if(F.col("key").isNull()).alias("null_keys"),
        F.count_if(F.col("vlen").isNull() & is_keyed).alias("tombstones"),
        total(F.when(is_keyed, F.col("size"))).alias("total_bytes"),
        total(F.when(closed & is_keyed, F.col("size"))).alias("closed_bytes"),
        total(F.when(F.col("offset") < F.col("last_closed"), F.col("size"))).alias("closed_superseded_bytes"),
        F.min(F.when(F.col("offset") > F.col("first"), F.col("offset"))).alias("first_repeat"),
    )


def _bins(sized: DataFrame, per_key: DataFrame) -> dict[int, dict[str, list[int]]]:
    joined = sized.where("key is not null").join(per_key.select("partition", "key", "last"), ["partition", "key"])
    binned = joined.select(
        "partition",
        F.expr("(offset - start) div width").cast("int").alias("bin"),
        F.when(F.col("offset") < F.col("last"), "superseded")
        .when(F.col("vlen").isNull(), "tombstone")
        .otherwise("live")
        .alias("what"),
    )
    found: dict[int, dict[str, list[int]]] = {}
    for row in binned.groupBy("partition", "bin", "what").agg(F.count("*").alias("n")).collect():
        found.setdefault(row["partition"], {}).setdefault(row["what"], [0] * BINS)[row["bin"]] = row["n"]
    return found


def _fit_bits(questions: Mapping[int, Question]) -> Any:
    """Which partitioners would have put a key where it is, as bits in the order of FITS."""
    question = next(iter(questions.values()))
    partitions, suffix = question.partitions, question.suffix

    @arrow_function("int")
    def fit_bits(keys: pa.Array, numbers: pa.Array) -> pa.Array:
        plain, here = binary_values(keys).shortened(suffix), numbers.to_numpy(zero_copy_only=False)
        fits = [(PARTITIONERS[name](plain, partitions) == here).astype("int32") << bit for bit, name in enumerate(FITS)]
        return pa.array(sum(fits[1:], fits[0]), pa.int32())

    return fit_bits


def _per_partition(per_key: DataFrame, questions: Mapping[int, Question]) -> DataFrame:
    bits = per_key.withColumn("bits", _fit_bits(questions)("key", "partition"))
    fits = [F.count_if(F.col("bits").bitwiseAND(F.lit(1 << bit)) != 0).alias(name) for bit, name in enumerate(FITS)]
    return bits.groupBy("partition").agg(
        F.count("*").alias("keys"),
        F.count_if(~F.col("is_dead")).alias("live_keys"),
        F.sum("last_size").cast("long").alias("latest_bytes"),
        *fits,
    )


def _misplaced(per_key: DataFrame, questions: Mapping[int, Question]) -> DataFrame:
    bit = 1 << FITS.index(next(iter(questions.values())).partitioner)
    bits = per_key.withColumn("bits", _fit_bits(questions)("key", "partition"))
    return bits.where(F.col("bits").bitwiseAND(F.lit(bit)) == 0)


def _ranked(rows: DataFrame, order: list[Column], limit: int) -> DataFrame:
    rank = F.row_number().over(Window.partitionBy("partition").orderBy(*order))
    return rows.withColumn("rank", rank).where(F.col("rank") <= limit).orderBy("partition", "rank")


def _named(ranked: DataFrame) -> dict[int, list[tuple[bytes, int]]]:
    found: dict[int, list[tuple[bytes, int]]] = {}
    for row in ranked.select("partition", "key", "n").collect():
        found.setdefault(row["partition"], []).append((bytes(row["key"]), row["n"]))
    return found


def _facts(
    partitioner: str,
    number: int,
    counted: tuple[Mapping[str, Any], Mapping[str, Any]],
    hot: Mapping[int, list[tuple[bytes, int]]],
    wrong: Mapping[int, list[tuple[bytes, int]]],
    bins: Mapping[int, Mapping[str, list[int]]],
) -> PartitionFacts:
    records, keys = counted
    counts = {name: records.get(name, 0) for name in _FROM_RECORDS} | {name: keys.get(name, 0) for name in _FROM_KEYS}
    fits = {name: keys.get(name, 0) for name in FITS}
    profile = {what: tuple(bins.get(number, {}).get(what, [0] * BINS)) for what in ("live", "superseded", "tombstone")}
    return PartitionFacts(
        partition=number,
        first_repeat=records.get("first_repeat"),
        fits=fits,
        misplaced=counts["keys"] - fits[partitioner],
        misplaced_keys=tuple(key for key, _ in wrong.get(number, [])),
        hot_keys=tuple(HotKey(key, n) for key, n in hot.get(number, [])),
        live_bins=profile["live"],
        superseded_bins=profile["superseded"],
        tombstone_bins=profile["tombstone"],
        **counts,
    )


_FROM_RECORDS = ("records", "null_keys", "tombstones", "total_bytes", "closed_bytes", "closed_superseded_bytes")
_FROM_KEYS = ("keys", "live_keys", "latest_bytes")
