"""Looks at clusters in the background, and what they mean for one app."""

import threading
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from tests.unit.streamfleet_platform.reconcile.sights import LOCK, START, app, spec, state

from streamfleet_platform.errors import TransientError
from streamfleet_platform.model.fleet_definition import Cluster
from streamfleet_platform.operations.cluster import GroupFacts, TopicFacts
from streamfleet_platform.operations.work import AppRevision
from streamfleet_platform.reconcile.cluster_watch import (
    ClusterSight,
    ClusterWatch,
    cluster_drift,
    missing_inputs,
    topics_seen,
)
from streamfleet_platform.reconcile.observing import AppToSee
from streamfleet_platform.registry.tables import InternalTopic

CHANGELOG = "one-activity-by-minute-changelog"
DEV = Cluster.model_validate({"bootstrap": "broker:9092"})
ROW = InternalTopic(
    application_id="one", name=CHANGELOG, app="one", generation=1, kind="changelog", partitions=4, topic_id="T1",
    configs={"cleanup.policy": "compact"}, recorded_at=START,
)  # fmt: skip


def to_see(name="one", cluster=DEV, topics=(ROW,), workers=()):
    definition = SimpleNamespace(spec=spec(outputs={"activity": {"topic": "one-out", "partitions": 4}}))
    revision = AppRevision(name, "r1", definition, LOCK, "code", cluster)
    return AppToSee(app(name=name), revision, workers, topics)


def sight(topic_id="T1", partitions=4, policy="compact", **more):
    there = {
        CHANGELOG: TopicFacts(CHANGELOG, topic_id, partitions),
        "one-in": TopicFacts("one-in", "T2", 4),
        "one-out": TopicFacts("one-out", "T3", 4),
    }
    configs = {CHANGELOG: {"cleanup.policy": policy}}
    ends = {CHANGELOG: {0: 5, 1: 6}, "one-in": {0: 1}, "one-out": {}}
    return ClusterSight(START, topics=there, configs=configs, ends=ends, **more)


def test_a_cluster_as_it_was_recorded_has_no_drift_and_its_topics_are_summed_up():
    assert cluster_drift(to_see(), sight()) == () and missing_inputs(to_see(), sight()) == ()
    found = topics_seen(to_see(), sight())
    assert {name: each.end_offsets for name, each in found.items()} == {CHANGELOG: 11, "one-in": 1, "one-out": 0}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (sight(topic_id="other"), "is another one than was recorded"),
        (sight(partitions=6), "has 6 partitions, not 4"),
        (sight(policy="delete"), "has cleanup.policy delete, not compact"),
        (ClusterSight(START), "is gone"),
    ],
)
def test_whatever_differs_of_a_recorded_topic_is_told(given, told):
    [text] = cluster_drift(to_see(), given)
    assert text.startswith(f"topic {CHANGELOG}") and told in text


def test_a_topic_that_is_being_made_differs_in_nothing():
    being_made = InternalTopic(**(ROW.model_dump() | {"topic_id": None}))
    assert cluster_drift(to_see(topics=(being_made,)), ClusterSight(START)) == ()


def test_members_of_the_group_that_nobody_started_here_are_told():
    group = GroupFacts(False, "stable", instances=("one-0", "one-0-thread-2", "one-10", "somebody"))
    given = to_see(workers=[state(0)])
    strangers = cluster_drift(given, sight(groups={"one": group}))
    assert [text.split(" ")[0] for text in strangers] == ["one-10", "somebody"]


def test_a_cluster_that_was_not_reached_says_nothing_about_topics():
    away = ClusterSight(START, problem="no answer")
    assert cluster_drift(to_see(), away) == () and missing_inputs(to_see(), away) == ()
    assert missing_inputs(to_see(), ClusterSight(START)) == ("one-in",)


class SlowCluster:
    """Answers when the test lets it."""

    def __init__(self):
        self.go, self.asked, self.error = threading.Event(), 0, None

    def topics(self, names):
        self.asked += 1
        assert self.go.wait(20)
        if self.error is not None:
            raise self.error
        return {name: TopicFacts(name, name, 1) for name in names}

    def configs(self, names):
        return {}

    def end_offsets(self, names):
        return {}

    def groups(self, groups):
        return {}


class Watched:
    def __init__(self):
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.cluster = SlowCluster()
        self.watch = ClusterWatch(lambda _: self.cluster, lambda: self.now)

    def sights(self, *names):
        return self.watch.sights([to_see(name) for name in names])

    def settled(self, *names):
        """After the look under way has ended."""
        self.cluster.go.set()
        for look in self.watch._looks.values():
            look.result(20)
        return self.sights(*names)


@pytest.fixture
def watched():
    watched = Watched()
    yield watched
    watched.cluster.go.set()
    watched.watch.close()


def test_nobody_waits_for_a_look_and_one_look_at_a_time_is_under_way(watched):
    assert watched.sights("one") == {} and watched.sights("one") == {}
    assert set(watched.settled("one")) == {"one"} and watched.cluster.asked == 1


def test_a_look_is_repeated_when_it_is_old_or_an_app_is_new(watched):
    watched.sights("one")
    watched.settled("one")
    assert watched.cluster.asked == 1
    assert set(watched.sights("one", "two")) == {"one"}, "the second is not seen yet"
    assert set(watched.settled("one", "two")) == {"one", "two"} and watched.cluster.asked == 2
    watched.now += timedelta(seconds=6)
    watched.sights("one", "two")
    watched.settled("one", "two")
    assert watched.cluster.asked == 3


def test_a_cluster_that_is_away_is_said_so_to_all_its_apps_and_asked_again_later(watched):
    watched.cluster.error = TransientError("no answer")
    watched.sights("one")
    assert {name: each.problem for name, each in watched.settled("one").items()} == {"one": "no answer"}
    watched.cluster.error = None
    watched.now += timedelta(seconds=6)
    watched.sights("one")
    assert watched.settled("one")["one"].problem is None
