"""The local engine is the oracle of the Spark one: of any log, both must say the same."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.audit_lab.logs import PARTITIONS, WINDOWED_LOGS, land, questions, rows_of

from streamfleet_jobs.audit.engine import Moment
from streamfleet_jobs.audit.local_engine import LocalEngine
from streamfleet_jobs.audit.spark_engine import SparkEngine
from streamfleet_jobs.audit.spec import SUFFIXES, StoreSpec


def compare_on_random_logs(spark, new_directory, examples):
    """All that an audit asks of its engine, of so many logs."""
    local, on_spark = LocalEngine(None, lambda _: None), SparkEngine(None, spark, lambda _: None)
    formats = st.sampled_from(["plain", "window"])
    partitioners = st.sampled_from(["murmur2", "crc32", "fnv1a"])

    @settings(max_examples=examples, suppress_health_check=[HealthCheck.too_slow])
    @given(WINDOWED_LOGS, formats, partitioners, st.integers(-1, 120), st.sampled_from([None, 0, 3]))
    def search(log, key_format, partitioner, until, oldest_ms):
        rows = rows_of(log)
        landed = new_directory("log") / "landed"
        land(landed, rows)
        store = StoreSpec("s", "t", PARTITIONS, key_format=key_format)
        asked = questions(rows, SUFFIXES[key_format], partitioner)
        moments = {number: Moment(until, oldest_ms) for number in rows}
        ranges = {number: [(1, until // 2), (until, until + 20)] for number in rows if until > 2}

        def answers(engine):
            digests = engine.digests(landed, store, moments)
            buckets = sorted({bucket for digest in digests.values() for bucket in digest})[::2]
            return (
                engine.facts(landed, asked),
                engine.last_gaps(landed),
                engine.tombstones_in(landed, ranges),
                digests,
                {number: engine.rows(landed, store, number, buckets, moments[number]) for number in rows},
            )

        assert answers(on_spark) == answers(local)

    search()
