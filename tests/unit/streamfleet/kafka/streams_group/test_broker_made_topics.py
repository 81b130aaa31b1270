"""Topics that the broker makes, and makes again when they are deleted: an app must not mistake the second for the first."""

from __future__ import annotations

import pytest
from tests.unit.streamfleet.kafka.scripted_coordinator import HandClock

import streamfleet as sf
from streamfleet.kafka.broker_patience import BrokerPatience
from streamfleet.kafka.client_errors import BrokerUnavailableError, InternalTopicLostError, PartitionCountError
from streamfleet.kafka.internal_topic_manager import InternalTopicManager
from streamfleet.kafka.streams_group.internal_topics import CREATION_PATIENCE_MS, FRESH_MS, BrokerMadeTopics
from streamfleet.ports import TopicInfo

COUNTS, WORDS = "app-counts-changelog", "app-words-repartition"


class Cluster:
    """An Admin that has topics, and counts how often it was asked."""

    def __init__(self) -> None:
        self.topics: dict[str, TopicInfo] = {}
        self.asked = 0

    def add(self, name: str, topic_id: str = "first", partitions: int = 2) -> None:
        self.topics[name] = TopicInfo(name, topic_id, partitions)

    def describe_topics(self, names):
        self.asked += 1
        return {name: self.topics[name] for name in names if name in self.topics}

    def describe_configs(self, names):
        return {name: {} for name in names}


@pytest.fixture
def cluster():
    return Cluster()


@pytest.fixture
def clock():
    return HandClock()


@pytest.fixture
def topics(cluster, clock):
    builder = sf.StreamsBuilder()
    builder.stream("in").group_by(lambda k, v: v, name="words").count(store="counts")
    plan = builder.build().plan({"in": 2}, sf.StreamsConfig(application_id="app"))
    manager = InternalTopicManager(
        cluster, patience=BrokerPatience(timeout_ms=1000, clock=clock), on_drift=lambda _: None
    )
    return BrokerMadeTopics(manager, plan, clock)


def test_a_new_app_has_none_and_none_are_created(topics, cluster):
    assert topics.check_start(lambda: False) == {}
    assert cluster.topics == {}


def test_an_app_that_was_reset_has_offsets_but_no_topics(topics):
    assert topics.check_start(lambda: True) == {}


def test_an_app_that_has_run_must_have_all_of_them(topics, cluster, clock):
    cluster.add(WORDS)
    began = clock.now_ms()
    with pytest.raises(InternalTopicLostError, match=f"gone, although the app has run: {COUNTS}.*reset the app"):
        topics.check_start(lambda: True)
    assert clock.now_ms() - began >= CREATION_PATIENCE_MS


def test_topics_that_are_just_being_made_for_another_member_are_waited_for(topics, cluster, clock):
    cluster.add(WORDS)
    asked = []

    def has_run() -> bool:
        asked.append(clock.now_ms())
        if len(asked) == 3:
            cluster.add(COUNTS)
        return True

    assert topics.check_start(has_run).keys() == {WORDS, COUNTS}


def test_ids_are_those_of_the_moment_a_task_is_opened(topics, cluster):
    topics.check_start(lambda: False)
    cluster.add(WORDS, "w")
    cluster.add(COUNTS, "c")
    assert topics.ids() == {WORDS: "w", COUNTS: "c"}


def test_tasks_that_are_opened_together_ask_once(topics, cluster, clock):
    cluster.add(WORDS)
    cluster.add(COUNTS)
    topics.ids()
    before = cluster.asked
    topics.ids()
    assert cluster.asked == before
    clock.pause_ms(FRESH_MS)
    topics.ids()
    assert cluster.asked > before


def test_a_topic_that_was_made_again_while_the_app_runs_is_an_error(topics, cluster, clock):
    cluster.add(WORDS)
    cluster.add(COUNTS)
    topics.check_start(lambda: True)
    cluster.add(COUNTS, "second")
    with pytest.raises(InternalTopicLostError, match=f"deleted and created again.*{COUNTS}"):
        topics.ids()
    clock.pause_ms(FRESH_MS)
    with pytest.raises(InternalTopicLostError, match=COUNTS):
        topics.ids()
    with pytest.raises(InternalTopicLostError, match=COUNTS):
        topics.check()


def test_a_look_now_and_then_does_not_mind_topics_that_are_not_made_yet(topics, cluster):
    topics.check()
    cluster.add(WORDS)
    topics.check()
    cluster.add(WORDS, "second")
    with pytest.raises(InternalTopicLostError, match=WORDS):
        topics.check()


def test_a_task_cannot_be_opened_while_topics_are_missing(topics, cluster):
    cluster.add(WORDS)
    with pytest.raises(BrokerUnavailableError, match=f"not visible yet: {COUNTS}"):
        topics.ids()


def test_partition_counts_are_checked_before_anybody_joins(topics, cluster):
    cluster.add(COUNTS, partitions=3)
    with pytest.raises(PartitionCountError, match="has 3 partitions, but the app needs 2"):
        topics.check_start(lambda: False)
