"""A changelog that had to be made although the app has run is told, and nothing that has its reasons is."""

import pytest
import structlog

import streamfleet as sf
from streamfleet.ids import TopicPartition
from streamfleet.kafka.offset_messages import CommittedOffset
from streamfleet.kafka_streams.empty_changelogs import tell_empty_changelogs
from streamfleet.metrics import Metrics
from streamfleet.task.offsets import CommittedOffset as WrittenByATask

IN, COUNTS, LATEST = TopicPartition("in", 1), "app-counts-changelog", "app-latest-changelog"
BY_A_TASK = CommittedOffset(5, WrittenByATask(5, 1000).metadata)
BY_A_RESET = CommittedOffset(5)


def counted_and_latest():
    """Two sub-topologies with a store each."""
    builder = sf.StreamsBuilder()
    builder.stream("in").group_by_key().count(store="counts")
    builder.stream("other").group_by_key().reduce(lambda one, two: two, store="latest")
    config = sf.StreamsConfig(application_id="app")
    return builder.build().plan({"in": 2, "other": 2}, config)


def told(created, committed):
    metrics = Metrics()
    with structlog.testing.capture_logs() as lines:
        tell_empty_changelogs(
            frozenset(created),
            counted_and_latest(),
            lambda partitions: {p: committed[p] for p in partitions if p in committed},
            metrics.record_empty_changelog,
        )
    assert [line["topic"] for line in lines] == list(metrics.empty_changelogs)
    return dict(metrics.empty_changelogs)


def test_a_changelog_that_was_made_behind_committed_offsets_is_told():
    assert told({COUNTS, LATEST}, {IN: BY_A_TASK}) == {COUNTS: 1}


@pytest.mark.parametrize(
    ("created", "committed"),
    [
        ({COUNTS, LATEST}, {}),
        ({COUNTS, LATEST}, {IN: BY_A_RESET}),
        ({LATEST}, {IN: BY_A_TASK}),
        ({"app-x-repartition"}, {IN: BY_A_TASK}),
        ((), {IN: BY_A_TASK}),
    ],
    ids=["first start", "reset", "another part of the app", "repartition topic", "nothing made"],
)
def test_what_has_its_reasons_is_not(created, committed):
    assert told(created, committed) == {}


def test_offsets_are_asked_for_only_where_a_changelog_was_made():
    asked = []
    tell_empty_changelogs({COUNTS}, counted_and_latest(), lambda p: asked.append(set(p)) or {}, lambda topic: None)
    assert asked == [{TopicPartition("in", 0), IN}]
