from __future__ import annotations

from streamfleet.metrics import Metrics, Sample


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
    assert list(metrics.samples()) == [Sample("dropped_records_total", {"operator": "join", "reason": "late"}, 1)]
