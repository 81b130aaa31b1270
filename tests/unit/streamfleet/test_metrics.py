from __future__ import annotations

import pytest

from streamfleet.errors import ConfigError, StateStoreError
from streamfleet.ids import TaskId
from streamfleet.metrics import LatencyHistogram, Metrics, Sample


def test_dropped_records_are_counted_by_operator_and_reason():
    metrics = Metrics()
    metrics.record_dropped("join", "null key")
    metrics.record_dropped("join", "null key")
    metrics.record_dropped("join", "late")
    assert metrics.dropped_records == {("join", "null key"): 2, ("join", "late"): 1}
    assert metrics.dropped_records_total == 3


def test_samples_have_a_name_labels_and_a_value():
    metrics = Metrics()
    metrics.record_dropped("join", "late")
    assert list(metrics.samples()) == [
        Sample("broker_outages_total", {}, 0),
        Sample("broker_away_seconds", {}, 0),
        Sample("dropped_records_total", {"operator": "join", "reason": "late"}, 1),
    ]


def test_failures_are_counted_by_the_name_of_the_error():
    metrics = Metrics()
    for error in (StateStoreError("one"), StateStoreError("two"), ConfigError("three")):
        metrics.record_failure(error)
    assert metrics.failures == {"StateStoreError": 2, "ConfigError": 1}
    assert Sample("failures_total", {"kind": "StateStoreError"}, 2) in list(metrics.samples())


def test_a_thread_counts_on_when_another_of_its_name_replaces_it():
    metrics = Metrics()
    metrics.thread("app-0").add_processed(TaskId(1, 0), 5, 0.25)
    metrics.thread("app-0").add_processed(TaskId(1, 0), 2, 0.5)
    samples = {(each.name, tuple(each.labels.values())): each.value for each in metrics.samples()}
    assert samples["processed_records_total", ("app-0", "1")] == 7
    assert metrics.thread("app-0").tasks == {TaskId(1, 0): (7, 0.75)}


def test_a_latency_is_in_the_first_bucket_that_holds_it():
    histogram = LatencyHistogram((0.1, 1.0))
    for seconds in (0.05, 0.1, 0.5, 9):
        histogram.observe(seconds)
    assert histogram.counts == [2, 1, 1]
    assert histogram.count == 4
    assert histogram.sum_seconds == pytest.approx(9.65)
