"""Which differences between a topic and what the app needs lose data."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamfleet.kafka.topic_drift import find_drift

COMPACTED = {"cleanup.policy": "compact"}
WINDOWED = {"cleanup.policy": "compact,delete", "retention.ms": "1000"}
REPARTITION = {"cleanup.policy": "delete", "retention.ms": "-1", "segment.bytes": "50"}
DEFAULTS = {"retention.ms": "604800000", "retention.bytes": "-1", "segment.bytes": "1073741824"}


def drift(expected, **actual):
    found = find_drift("t", expected, DEFAULTS | expected | {name.replace("_", "."): v for name, v in actual.items()})
    return {each.setting: each.loses_data for each in found}


@pytest.mark.parametrize("expected", [COMPACTED, WINDOWED, REPARTITION])
def test_a_topic_as_created_has_no_drift(expected):
    assert drift(expected) == {}


@pytest.mark.parametrize(
    ("expected", "actual", "found"),
    [
        (COMPACTED, {"cleanup_policy": "delete"}, {"cleanup.policy": True}),
        (COMPACTED, {"cleanup_policy": "compact,delete"}, {"cleanup.policy": True}),
        (COMPACTED, {"retention_ms": "1"}, {}),
        (COMPACTED, {"retention_bytes": "1"}, {}),
        (WINDOWED, {"cleanup_policy": "delete, compact"}, {}),
        (WINDOWED, {"cleanup_policy": "compact"}, {"cleanup.policy": False}),
        (WINDOWED, {"retention_ms": "999"}, {"retention.ms": True}),
        (WINDOWED, {"retention_ms": "1001"}, {"retention.ms": False}),
        (WINDOWED, {"retention_ms": "-1"}, {"retention.ms": False}),
        (WINDOWED, {"retention_bytes": "100"}, {"retention.bytes": True}),
        (
            WINDOWED,
            {"cleanup_policy": "compact", "retention_ms": "1"},
            {"cleanup.policy": False, "retention.ms": False},
        ),
        (REPARTITION, {"cleanup_policy": "compact"}, {"cleanup.policy": True}),
        (REPARTITION, {"retention_ms": "604800000"}, {"retention.ms": True}),
        (REPARTITION, {"retention_bytes": "5"}, {"retention.bytes": True}),
        (REPARTITION, {"segment_bytes": "60"}, {"segment.bytes": False}),
        ({"min.compaction.lag.ms": "100"}, {"min_compaction_lag_ms": "99"}, {"min.compaction.lag.ms": True}),
        ({"min.compaction.lag.ms": "100"}, {"min_compaction_lag_ms": "101"}, {"min.compaction.lag.ms": False}),
    ],
)
def test_differences(expected, actual, found):
    assert drift(expected, **actual) == found


def test_a_drift_says_what_is_and_what_should_be():
    (found,) = find_drift("t", COMPACTED, {"cleanup.policy": "delete", "retention.bytes": "-1"})
    assert (found.topic, found.setting, found.expected, found.actual) == ("t", "cleanup.policy", "compact", "delete")


@given(st.integers(0, 10**12), st.integers(0, 10**12))
def test_keeping_records_longer_never_loses_any(wanted, longer):
    assert drift(WINDOWED | {"retention.ms": str(wanted)}, retention_ms=str(wanted + longer)).get("retention.ms") in (
        None,
        False,
    )
