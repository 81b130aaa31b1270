"""PartitionFacts over DataFrames: grouping and counting are Spark's own, placement is the columns package's. For spark_engine.py.

Keys are grouped once; what needs every record joins that again. Names of columns are those of the slim copy and of PartitionFacts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 -- as everybody calls it

from streamfleet_jobs.audit.facts import BINS, FITS, HOT_KEYS, NAMED_KEYS, HotKey, PartitionFacts, Question, bin_width
from streamfleet_jobs.columns.binary import binary_values
from streamfleet_jobs.columns.partitioners import PARTITIONERS
from streamfleet_jobs.spark.arrow_function import arrow_function

Questions = Mapping[int, Question]
"""By partition. All of one topic: how many partitions, which suffix, which partitioner is the same in all."""


def facts_of(session: SparkSession, slim: DataFrame, questions: Questions) -> dict[int, PartitionFacts]:
    sized = _with_question(session, slim.where(F.col("partition").isin(*questions)), questions)
    per_key = _per_key(sized).withColumn("bits", _fit_bits(questions)("key", "partition")).persist()
    try:
        return _answered(sized, per_key, questions)
    finally:
        per_key.unpersist()


def _answered(sized: DataFrame, per_key: DataFrame, questions: Questions) -> dict[int, PartitionFacts]:
    records = {row["partition"]: row.asDict() for row in _per_record(sized, per_key).collect()}
    keys = {row["partition"]: row.asDict() for row in _per_partition(per_key, questions).collect()}
    hot = _named(_ranked(per_key.where("n > 1"), [F.desc("n"), F.asc("key")], HOT_KEYS))
    wrong = _named(_ranked(per_key.where(_is_misplaced(questions)), [F.asc("key")], NAMED_KEYS))
    bins = _bins(sized, per_key)
    return {
        number: PartitionFacts(
            partition=number,
            **_counts(records.get(number, {}), keys.get(number, {})),
            misplaced_keys=tuple(key for key, _ in wrong.get(number, [])),
            hot_keys=tuple(HotKey(key, n) for key, n in hot.get(number, [])),
            **_profile(bins.get(number, {})),
        )
        for number in questions
    }


def _with_question(session: SparkSession, slim: DataFrame, questions: Questions) -> DataFrame:
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


def _fit_bits(questions: Questions) -> Any:
    """Which partitioners would have put a key where it is, as bits in the order of FITS."""
    question = next(iter(questions.values()))
    partitions, suffix = question.partitions, question.suffix

    @arrow_function("int")
    def fit_bits(keys: pa.Array, numbers: pa.Array) -> pa.Array:
        plain, here = binary_values(keys).shortened(suffix), numbers.to_numpy(zero_copy_only=False)
        fits = [(PARTITIONERS[name](plain, partitions) == here).astype("int32") << bit for bit, name in enumerate(FITS)]
        return pa.array(sum(fits[1:], fits[0]), pa.int32())

    return fit_bits


def _has(name: str) -> Column:
    return F.col("bits").bitwiseAND(F.lit(1 << FITS.index(name))) != 0


def _is_misplaced(questions: Questions) -> Column:
    return ~_has(next(iter(questions.values())).partitioner)


def _per_partition(per_key: DataFrame, questions: Questions) -> DataFrame:
    wrong = _is_misplaced(questions)
    return per_key.groupBy("partition").agg(
        F.count("*").alias("keys"),
        F.count_if(~F.col("is_dead")).alias("live_keys"),
        F.sum("last_size").cast("long").alias("latest_bytes"),
        F.count_if(wrong).alias("misplaced"),
        *(F.count_if(_has(name)).alias(f"fits_{name}") for name in FITS),
        *(F.count_if(wrong & _has(name)).alias(f"misplaced_fits_{name}") for name in FITS),
    )


def _ranked(rows: DataFrame, order: list[Column], limit: int) -> DataFrame:
    rank = F.row_number().over(Window.partitionBy("partition").orderBy(*order))
    return rows.withColumn("rank", rank).where(F.col("rank") <= limit).orderBy("partition", "rank")


def _named(ranked: DataFrame) -> dict[int, list[tuple[bytes, int]]]:
    found: dict[int, list[tuple[bytes, int]]] = {}
    for row in ranked.select("partition", "key", "n").collect():
        found.setdefault(row["partition"], []).append((bytes(row["key"]), row["n"]))
    return found


_FROM_RECORDS = ("records", "null_keys", "tombstones", "total_bytes", "closed_bytes", "closed_superseded_bytes")
_FROM_KEYS = ("keys", "live_keys", "latest_bytes", "misplaced")


def _counts(records: Mapping[str, Any], keys: Mapping[str, Any]) -> dict[str, Any]:
    """A partition without records, or without keys, has no row."""
    return {
        "first_repeat": records.get("first_repeat"),
        **{name: records.get(name, 0) for name in _FROM_RECORDS},
        **{name: keys.get(name, 0) for name in _FROM_KEYS},
        "fits": {name: keys.get(f"fits_{name}", 0) for name in FITS},
        "misplaced_fits": {name: keys.get(f"misplaced_fits_{name}", 0) for name in FITS},
    }


def _profile(bins: Mapping[str, list[int]]) -> dict[str, Any]:
    return {f"{what}_bins": tuple(bins.get(what, [0] * BINS)) for what in ("live", "superseded", "tombstone")}
