"""Where inputs begin, and where they go on behind a gap, by what their source says."""

from datetime import timedelta
from types import SimpleNamespace

import pytest

from streamfleet.errors import StreamsError
from streamfleet.ids import TaskId, TopicPartition
from streamfleet.kafka.client_errors import InputGapError
from streamfleet.ports import OffsetKind
from streamfleet.testing.manual_clock import ManualClock
from streamfleet.thread.input_positions import InputPositions

NOW_MS = 10_000_000
TASK, WORDS = TaskId(0, 0), TopicPartition("words", 0)
AN_HOUR = timedelta(hours=1)


class Log:
    """Offsets 40 to 99; the record at 70 is an hour old."""

    def list_offsets(self, partitions, kind):
        return dict.fromkeys(partitions, 40 if kind is OffsetKind.EARLIEST else 100)

    def offsets_since(self, partitions, since_ms):
        return dict.fromkeys(partitions, 70 if since_ms <= NOW_MS - 3_600_000 else 100)


def positions(policy, repartition_topics=frozenset()):
    source = SimpleNamespace(name="source", offset_reset=policy)
    factory = SimpleNamespace(
        source=lambda task_id, topic: source,
        offset_reset=lambda task_id, topic: "earliest" if policy is None else policy,
        repartition_topics=repartition_topics,
        clock=ManualClock(NOW_MS),
    )
    return InputPositions(factory, Log())


@pytest.mark.parametrize(
    ("policy", "expected"),
    [(None, 40), ("earliest", 40), ("latest", 100), (AN_HOUR, 70), (timedelta(0), 100), (timedelta(days=365), 70)],
)
def test_without_a_committed_offset_the_source_decides(policy, expected):
    assert positions(policy).beginning(TASK, WORDS) == expected


def test_a_source_that_says_none_needs_a_committed_offset():
    with pytest.raises(StreamsError, match="no committed offset for words-0, and its source says 'none'; set the"):
        positions("none").beginning(TASK, WORDS)


@pytest.mark.parametrize(
    ("policy", "target", "deleted", "skipped"),
    [("earliest", 40, 15, 0), ("latest", 100, 15, 60), (AN_HOUR, 70, 15, 30)],
)
def test_what_is_deleted_and_what_is_skipped_are_counted_apart(policy, target, deleted, skipped):
    passed = positions(policy).behind_gap(TASK, WORDS, 25)
    assert (passed.target, passed.deleted, passed.skipped) == (target, deleted, skipped)
    assert "has lost the offsets 25 to 39" in passed.gap.fact


@pytest.mark.parametrize(("policy", "target"), [("earliest", 40), ("latest", 100), (AN_HOUR, 70)])
def test_a_truncated_end_loses_nothing_that_was_not_processed(policy, target):
    passed = positions(policy).behind_gap(TASK, WORDS, 120)
    assert (passed.target, passed.deleted, passed.skipped) == (target, 0, 0)


@pytest.mark.parametrize("policy", [None, "none"])
def test_nobody_having_said_so_a_gap_is_an_error(policy):
    with pytest.raises(InputGapError, match="has lost the offsets 25 to 39"):
        positions(policy).behind_gap(TASK, WORDS, 25)


def test_a_gap_in_a_repartition_topic_is_always_an_error():
    with pytest.raises(InputGapError):
        positions("earliest", frozenset({"words"})).behind_gap(TASK, WORDS, 25)
