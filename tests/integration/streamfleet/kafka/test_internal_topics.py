"""Internal topics on a real broker: created once, checked ever after."""

import re
import threading
import uuid

import pytest

import streamfleet as sf
from streamfleet.kafka.client_errors import MissingSourceTopicError, PartitionCountError, TopicSettingsError
from streamfleet.kafka.internal_topic_manager import InternalTopicManager, message_limits
from streamfleet.ports import TopicToCreate

pytestmark = pytest.mark.filterwarnings("default")


class App:
    """Counts words: a repartition topic and a changelog."""

    def __init__(self, source, **settings):
        self.id = f"app-{uuid.uuid4().hex[:8]}"
        self.config = sf.StreamsConfig.from_mapping({"application.id": self.id, **settings})
        builder = sf.StreamsBuilder()
        builder.stream(source).group_by(lambda _, word: word, name="words").count(store="counts")
        self.topology = builder.build()
        self.repartition = f"{self.id}-words-repartition"
        self.changelog = f"{self.id}-counts-changelog"

    def plan(self, manager):
        found = manager.source_topics(self.topology, self.id)
        return self.topology.plan({name: topic.partitions for name, topic in found.items()}, self.config)


@pytest.fixture
def drifts():
    return []


@pytest.fixture
def manager(admin, drifts):
    return InternalTopicManager(admin, on_drift=drifts.append)


def test_missing_topics_are_created_with_their_settings(admin, manager, new_topic):
    app = App(new_topic(3))
    made = manager.prepare(app.plan(manager))
    assert made.created == {app.repartition, app.changelog}
    assert {name: topic.partitions for name, topic in made.topics.items()} == {app.repartition: 3, app.changelog: 3}
    settings = admin.describe_configs(made.created)
    assert settings[app.changelog]["cleanup.policy"] == "compact"
    assert settings[app.repartition]["retention.ms"] == "-1"
    assert made.topics == admin.describe_topics(made.created)


def test_a_second_start_finds_the_topics_of_the_first(manager, new_topic, drifts):
    app = App(new_topic(2))
    first = manager.prepare(app.plan(manager))
    second = manager.prepare(app.plan(manager))
    assert (second.created, second.topics, second.drifts, drifts) == (frozenset(), first.topics, (), [])


def test_two_workers_may_start_at_once(admin, manager, new_topic):
    app = App(new_topic(2))
    plan = app.plan(manager)
    barrier, made = threading.Barrier(4), []

    def start():
        barrier.wait()
        made.append(InternalTopicManager(admin).prepare(plan))

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one.topics for one in made] == [made[0].topics] * 4
    assert sorted(name for one in made for name in one.created) == sorted([app.repartition, app.changelog])


def test_source_topics_that_do_not_exist_are_named(manager, new_topic):
    builder = sf.StreamsBuilder()
    builder.stream(new_topic()).merge(builder.stream("zebra")).merge(builder.stream("ape")).to("out")
    builder.global_table("gnu", store="animals")
    with pytest.raises(MissingSourceTopicError, match="do not exist: ape, gnu, zebra; create them") as caught:
        manager.source_topics(builder.build(), "app")
    assert caught.value.topics == ("ape", "gnu", "zebra")


def test_a_pattern_finds_what_is_there_but_no_topics_of_the_app_itself(admin, manager):
    mark = uuid.uuid4().hex[:8]
    names = [f"logs-{mark}-1", f"logs-{mark}-2"]
    admin.create_topics([TopicToCreate(name, 1, {}) for name in names])
    app = App(re.compile(f".*{mark}.*"))
    app.id = f"app-{mark}"
    app.config = app.config.with_(application_id=app.id)
    assert sorted(manager.source_topics(app.topology, app.id)) == names
    manager.prepare(app.plan(manager))
    assert sorted(manager.source_topics(app.topology, app.id)) == names


def test_a_wrong_partition_count_is_fatal_and_names_both_numbers(admin, manager, new_topic):
    app = App(new_topic(4))
    admin.create_topics([TopicToCreate(app.changelog, 3, {"cleanup.policy": "compact"})])
    with pytest.raises(PartitionCountError, match=f"{app.changelog} has 3 partitions, but the app needs 4") as caught:
        manager.prepare(app.plan(manager))
    assert (caught.value.topic, caught.value.actual, caught.value.expected) == (app.changelog, 3, 4)


def test_a_changelog_that_would_be_deleted_by_age_is_refused(admin, manager, new_topic, drifts):
    app = App(new_topic())
    admin.create_topics([TopicToCreate(app.changelog, 1, {"cleanup.policy": "delete"})])
    with pytest.raises(
        TopicSettingsError, match="would lose data: its cleanup.policy is delete, the app needs compact"
    ):
        manager.prepare(app.plan(manager))
    assert (app.changelog, "cleanup.policy", True) in [(d.topic, d.setting, d.loses_data) for d in drifts]


def test_the_same_policy_is_fine_if_the_app_asks_for_it(admin, manager, new_topic):
    app = App(new_topic(), **{"topic.cleanup.policy": "delete", "topic.retention.ms": "-1"})
    settings = {"cleanup.policy": "delete", "retention.ms": "-1", "message.timestamp.type": "CreateTime"}
    admin.create_topics([TopicToCreate(app.changelog, 1, settings)])
    assert manager.prepare(app.plan(manager)).drifts == ()


def test_a_difference_that_loses_nothing_is_told_and_lived_with(admin, manager, new_topic, drifts):
    app = App(new_topic())
    settings = {"cleanup.policy": "delete", "retention.ms": "-1", "segment.bytes": "104857600"}
    admin.create_topics([TopicToCreate(app.repartition, 1, settings)])
    made = manager.prepare(app.plan(manager))
    (drift,) = made.drifts
    assert (drift.topic, drift.setting, drift.expected, drift.actual, drift.loses_data) == (
        app.repartition,
        "segment.bytes",
        "52428800",
        "104857600",
        False,
    )
    assert drifts == [drift]


def test_the_message_limits_of_existing_topics_are_found(admin, new_topic):
    usual, small = new_topic(), new_topic(max_message_bytes=2000)
    assert message_limits(admin, [usual, small, "no-such-topic"]) == {usual: 1_048_588, small: 2000}
    assert message_limits(admin, ["no-such-topic"]) == {}
