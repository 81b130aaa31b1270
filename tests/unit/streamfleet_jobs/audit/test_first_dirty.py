from streamfleet_jobs.audit.first_dirty import from_consumer, from_raw_log
from streamfleet_jobs.audit.log_facts import log_facts
from streamfleet_jobs.kafka.raw_log import Batch, RawLog


def batch(base, last, count=None, *, control=False, horizon=None, size=100):
    count = last - base + 1 if count is None else count
    return Batch(base, last, count, size, control, control, horizon, 1000 + base)


def log(*batches, segments=(0,)):
    return RawLog(tuple(batches), segments, batches[-1].last + 1 if batches else 0)


def test_the_border_after_the_last_hole_is_the_first_dirty_offset():
    cleaned = log(batch(0, 9, 4), batch(10, 19, 3), batch(20, 29), batch(30, 39), segments=(0, 20, 30))
    found = from_raw_log(cleaned, 0, first_repeat=25)
    assert (found.certainty, found.low, found.offset) == ("exact", 20, 20)


def test_a_hole_between_batches_counts_and_a_transaction_marker_does_not():
    missing = log(batch(0, 9), batch(15, 19), batch(20, 29), segments=(0, 15, 25))
    assert from_raw_log(missing, 0, first_repeat=24).low == 15
    markers = log(batch(0, 9), batch(10, 10, control=True), batch(11, 19), segments=(0, 11))
    assert from_raw_log(markers, 0, first_repeat=5).offset == 0


def test_several_borders_are_a_bracket_and_none_seen_is_unknown():
    unique = log(batch(0, 9), batch(10, 19), batch(20, 29), segments=(0, 10, 20))
    assert from_raw_log(unique, 0, None).certainty == "unknown"
    cleaned = log(batch(0, 9, 5), batch(10, 19), batch(20, 29), batch(30, 39), segments=(0, 10, 20, 30))
    found = from_raw_log(cleaned, 0, first_repeat=25)
    assert (found.certainty, found.low, found.high, found.offset) == ("bracket", 10, 20, 20)


def test_keys_that_repeat_before_the_last_hole_are_irregular():
    found = from_raw_log(log(batch(0, 9), batch(10, 19, 5), segments=(0,)), 0, first_repeat=3)
    assert found.certainty == "irregular" and found.offset is None


def test_gaps_of_a_consumer_prove_nothing_where_writers_are_transactional():
    assert from_consumer((0, 100), 40, 60, "exactly_once_v2").certainty == "unknown"
    assert from_consumer((0, 100), 40, 60, "at_least_once").certainty == "bracket"
    assert from_consumer((0, 100), 70, 60, "at_least_once").certainty == "irregular"
    assert from_consumer((0, 100), None, None, "at_least_once").certainty == "unknown"


def test_the_dirty_ratio_is_the_cleaners_and_leaves_the_active_segment_out():
    raw = log(batch(0, 9, 4), batch(10, 19), batch(20, 29, size=300), batch(30, 39, size=999), segments=(0, 10, 30))
    facts = log_facts(0, raw, from_raw_log(raw, 0, first_repeat=12), now_ms=0)
    assert (facts.clean_bytes, facts.cleanable_bytes, facts.dirty_ratio) == (100, 400, 0.8)


def test_batches_past_their_delete_horizon_are_overdue_unless_active():
    raw = log(
        batch(0, 9, 4, horizon=50),
        batch(10, 19, 4, horizon=60),
        batch(20, 29, 4, horizon=500),
        batch(30, 30, control=True, horizon=10),
        batch(31, 39, horizon=20),
        segments=(0, 31),
    )
    facts = log_facts(0, raw, from_raw_log(raw, 0, None), now_ms=100)
    assert facts.overdue == ((0, 19),) and facts.overdue_since_ms == 50
