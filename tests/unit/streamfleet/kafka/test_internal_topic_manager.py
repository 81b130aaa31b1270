"""Internal topics against a cluster that is slow to see them; the rest is tested on a real one."""

import pytest

import streamfleet as sf
from streamfleet.kafka.broker_patience import BrokerPatience
from streamfleet.kafka.client_errors import BrokerUnavailableError
from streamfleet.kafka.internal_topic_manager import InternalTopicManager
from streamfleet.ports import TopicInfo


class Clock:
    now = 0

    def now_ms(self):
        return self.now

    def pause_ms(self, milliseconds):
        self.now += milliseconds


class SlowCluster:
    """Topics are described only after they have been asked for `unseen` times."""

    def __init__(self, unseen):
        self.unseen, self.existing = unseen, {"in": 2}

    def describe_topics(self, names):
        shown = self.existing if self.unseen <= 0 else {"in": 2}
        self.unseen -= len(self.existing) > 1
        return {name: TopicInfo(name, f"id-{name}", shown[name]) for name in names if name in shown}

    def create_topics(self, topics):
        created = frozenset(topic.name for topic in topics if topic.name not in self.existing)
        self.existing |= {topic.name: topic.partitions for topic in topics}
        return created

    def describe_configs(self, names):
        return {name: {} for name in names}


@pytest.fixture
def plan():
    builder = sf.StreamsBuilder()
    builder.stream("in").group_by_key().count(store="counts")
    return builder.build().plan({"in": 2}, sf.StreamsConfig(application_id="app"))


def test_new_topics_are_waited_for(plan):
    made = InternalTopicManager(SlowCluster(3), patience=BrokerPatience(clock=Clock())).prepare(plan)
    assert made.topics == {"app-counts-changelog": TopicInfo("app-counts-changelog", "id-app-counts-changelog", 2)}
    assert made.created == {"app-counts-changelog"}


def test_topics_that_stay_invisible_are_an_error_with_their_names(plan):
    manager = InternalTopicManager(SlowCluster(10**6), patience=BrokerPatience(timeout_ms=1000, clock=Clock()))
    with pytest.raises(BrokerUnavailableError, match="not visible yet: app-counts-changelog"):
        manager.prepare(plan)
