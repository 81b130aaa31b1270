"""InternalTopicWatch: internal topics that are deleted, or made anew, while the app runs."""

import pytest
import structlog
from tests.unit.streamfleet.kafka.scripted_coordinator import HandClock
from tests.unit.streamfleet.kafka.streams_group.test_broker_made_topics import COUNTS, WORDS, Cluster

import streamfleet as sf
from streamfleet.kafka.client_errors import InternalTopicLostError
from streamfleet.kafka.internal_topic_manager import InternalTopicManager
from streamfleet.kafka.internal_topic_watch import InternalTopicWatch

TIMEOUT_MS = 5000


@pytest.fixture
def cluster():
    cluster = Cluster()
    cluster.add(WORDS)
    cluster.add(COUNTS)
    return cluster


@pytest.fixture
def clock():
    return HandClock()


@pytest.fixture
def watch(cluster, clock):
    builder = sf.StreamsBuilder()
    builder.stream("in").group_by(lambda k, v: v, name="words").count(store="counts")
    plan = builder.build().plan({"in": 2}, sf.StreamsConfig(application_id="app"))
    present = dict(cluster.topics)
    return InternalTopicWatch(InternalTopicManager(cluster), plan, present, clock, missing_timeout_ms=TIMEOUT_MS)


def test_topics_that_are_the_same_are_asked_for_every_time(watch, cluster):
    for _ in range(3):
        watch.check()
    assert cluster.asked == 3
    assert watch.ids() == {WORDS: "first", COUNTS: "first"}


@pytest.mark.parametrize("topic", [WORDS, COUNTS])
def test_one_that_was_made_anew_is_refused_for_good(watch, cluster, topic):
    cluster.add(topic, "second")
    for _ in range(2):
        with pytest.raises(
            InternalTopicLostError, match=f"deleted and created again while the app was running: {topic};"
        ):
            watch.check()
    assert watch.ids()[topic] == "first"


def test_one_that_is_missing_may_come_back(watch, cluster, clock):
    missing = cluster.topics.pop(COUNTS)
    with structlog.testing.capture_logs() as lines:
        for _ in range(4):
            watch.check()
            clock.at_ms += TIMEOUT_MS // 4
        cluster.topics[COUNTS] = missing
        watch.check()
        del cluster.topics[COUNTS]
        watch.check()  # its time begins again
    assert [line["missing"] for line in lines] == [[COUNTS], [COUNTS]]


def test_one_that_stays_away_is_named(watch, cluster, clock):
    del cluster.topics[COUNTS]
    watch.check()
    clock.at_ms += TIMEOUT_MS
    with pytest.raises(
        InternalTopicLostError, match=f"deleted while the app was running: {COUNTS}; restore the topics"
    ):
        watch.check()
