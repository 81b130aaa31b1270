"""The Spark engine: the same facts over DataFrames, for topics that do not fit one machine. Plain and over Spark Connect.

The topic is read once, into the slim copy; every question reads that. Facts of partitions are in spark_facts.py; hashes are the
columns package's, in Arrow functions.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 -- as everybody calls it

from streamfleet_jobs.audit.engine import Moment, Ranges
from streamfleet_jobs.audit.facts import PartitionFacts, Question
from streamfleet_jobs.audit.spark_facts import facts_of
from streamfleet_jobs.audit.spec import SUFFIXES, AuditSpec, StoreSpec
from streamfleet_jobs.columns.binary import binary_values
from streamfleet_jobs.columns.key_times import key_times
from streamfleet_jobs.columns.row_digest import BUCKETS, BucketDigest, Digest, row_hashes
from streamfleet_jobs.columns.slim import SLIM_DDL
from streamfleet_jobs.errors import UnavailableError
from streamfleet_jobs.kafka.topics import TopicPin
from streamfleet_jobs.progress import Report
from streamfleet_jobs.spark.arrow_function import arrow_function
from streamfleet_jobs.spark.java_settings import java_settings

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
        for name, value in (self._spec.java_client_config or java_settings(self._spec.client_config)).items():
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
        return facts_of(self._session, self._landed(landed), questions)

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
