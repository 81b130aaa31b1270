"""What every Cluster does, the real one and the simulated one alike: operations rest on this, their kill tests on the latter."""

import time

import pytest

from streamfleet_platform.errors import ConflictError
from streamfleet_platform.operations.cluster import Cluster, TopicWanted


class ClusterContract:
    """Fixtures of a subclass: `cluster`; `name`, which nobody else's topics and groups begin with; `put(topic, records)`;
    `join(group)`, a context in which the group has a member.
    """

    @pytest.fixture
    def topic(self, cluster: Cluster, name):
        """Of two partitions."""
        cluster.create_topics([TopicWanted(f"{name}-in", 2)])
        yield f"{name}-in"
        left = cluster.topics([f"{name}-in", f"{name}-more"])
        cluster.delete_topics({facts.name: facts.topic_id for facts in left.values()})

    def test_topics_that_are_there_have_an_id_and_partitions(self, cluster, topic, name):
        found = cluster.topics([topic, f"{name}-nowhere"])
        assert found.keys() == {topic}
        assert (found[topic].name, found[topic].partitions) == (topic, 2) and found[topic].topic_id
        assert cluster.topics([]) == {}

    def test_creating_leaves_what_is_there(self, cluster, topic, name):
        before = cluster.topics([topic])[topic]
        for _ in range(2):
            cluster.create_topics([TopicWanted(topic, 5), TopicWanted(f"{name}-more", 3)])
        found = cluster.topics([topic, f"{name}-more"])
        assert found[topic] == before
        assert found[f"{name}-more"].partitions == 3 and found[f"{name}-more"].topic_id != before.topic_id

    def test_settings_are_those_it_was_made_with(self, cluster, topic, name):
        cluster.create_topics([TopicWanted(f"{name}-more", 1, {"cleanup.policy": "compact"})])
        found = cluster.configs([f"{name}-more", f"{name}-nowhere"])
        assert found.keys() == {f"{name}-more"} and found[f"{name}-more"]["cleanup.policy"] == "compact"

    def test_settings_that_are_altered_leave_the_others(self, cluster, topic, name):
        cluster.create_topics([TopicWanted(f"{name}-more", 1, {"cleanup.policy": "compact", "retention.ms": "60000"})])
        changed = {"retention.ms": "120000", "segment.ms": "30000"}
        wanted = {"cleanup.policy": "compact"} | changed
        for _ in range(2):
            cluster.alter_configs({f"{name}-more": changed, f"{name}-nowhere": {"retention.ms": "1"}})
            deadline = time.monotonic() + 30
            while not wanted.items() <= (found := cluster.configs([f"{name}-more"])[f"{name}-more"]).items():
                assert time.monotonic() < deadline, found
        assert cluster.topics([f"{name}-nowhere"]) == {}
        cluster.alter_configs({})
        cluster.alter_configs({f"{name}-more": {}})

    def test_a_topic_is_deleted_by_its_id_and_never_another_one_of_its_name(self, cluster, topic, name):
        former = cluster.topics([topic])[topic].topic_id
        assert cluster.delete_topics({topic: former, f"{name}-nowhere": former}) == (topic,)
        assert cluster.topics([topic]) == {}
        assert cluster.delete_topics({topic: former}) == ()
        cluster.create_topics([TopicWanted(topic, 2)])
        assert cluster.topics([topic])[topic].topic_id != former
        assert cluster.delete_topics({topic: former}) == ()
        assert topic in cluster.topics([topic])

    def test_ends_count_by_partition(self, cluster, topic, name, put):
        put(topic, 6)
        ends = cluster.end_offsets([topic, f"{name}-nowhere"])
        assert ends.keys() == {topic} and ends[topic].keys() == {0, 1} and sum(ends[topic].values()) == 6

    def test_a_group_that_does_not_exist_is_empty(self, cluster, name):
        assert cluster.group(name).is_empty and cluster.groups([name, f"{name}-2"])[f"{name}-2"].is_empty
        assert cluster.groups([]) == {}
        cluster.delete_group(name)  # harmless

    def test_a_group_with_members_keeps_its_offsets_from_others(self, cluster, topic, name, join):
        with join(name):
            assert not cluster.group(name).is_empty and not cluster.groups([name])[name].is_empty
            with pytest.raises(ConflictError, match="has members"):
                cluster.delete_group(name)
            with pytest.raises(ConflictError, match="has members"):
                cluster.set_offsets(name, [topic], "earliest")
        assert cluster.group(name).is_empty
        cluster.delete_group(name)

    def test_offsets_are_set_for_topics_that_are_there_and_go_with_the_group(self, cluster, topic, name, put):
        put(topic, 6)
        assert cluster.set_offsets(name, [topic, f"{name}-nowhere"], "latest") == {topic: 2}
        assert cluster.committed(name, [topic, f"{name}-nowhere"]) == {topic: 6}
        assert cluster.set_offsets(name, [topic], "earliest") == {topic: 2}
        assert cluster.committed(name, [topic]) == {topic: 0}
        cluster.set_offsets(name, [topic], "latest")
        for _ in range(2):
            cluster.delete_group(name)
        assert cluster.committed(name, [topic]) == {topic: 0}
        assert cluster.set_offsets(name, [], "latest") == {} and cluster.committed(name, []) == {}
