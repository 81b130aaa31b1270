"""Reset over a pretended cluster: the order of its steps, and what is left when it is killed between two of them."""

import re

import pytest

import streamfleet as sf
from streamfleet.ids import TopicPartition
from streamfleet.kafka.group_admin import GroupMembers
from streamfleet.ports import OffsetKind, TopicInfo
from streamfleet.worker.app_record import AppRecordFile
from streamfleet.worker.reset import Reset, ResetRefusedError
from streamfleet.worker.start_positions import AtEnd, ShiftedBy

EMPTY = GroupMembers(is_empty=True, state="empty", members=())


class Killed(BaseException):
    pass


class Cluster:
    """Topics and one group, with a step at which everything ends."""

    def __init__(self):
        self.topics = {"words": 2, "out": 1, "shop-by-word-repartition": 2, "shop-counts-changelog": 2, "shop-other": 1}
        self.group = EMPTY
        self.offsets = {TopicPartition("words", 0): 5}
        self.killed_at = None

    def _step(self, name):
        if self.killed_at == name:
            raise Killed

    def topic_names(self):
        return frozenset(self.topics)

    def describe_topics(self, names):
        return {name: TopicInfo(name, name, self.topics[name]) for name in names if name in self.topics}

    def list_offsets(self, partitions, kind):
        return dict.fromkeys(partitions, 3 if kind is OffsetKind.EARLIEST else 90)

    def delete_topics(self, names):
        self._step("topics")
        return frozenset(name for name in names if self.topics.pop(name, None))

    def committed(self, group, partitions):
        return {each: self.offsets[each] for each in partitions if each in self.offsets}

    def members(self, group):
        return self.group

    def delete(self, group):
        self._step("group")
        self.offsets = {}
        return True

    def set_offsets(self, group, offsets):
        self._step("offsets")
        self.offsets = dict(offsets)


@pytest.fixture
def config(tmp_path):
    return sf.StreamsConfig(application_id="shop", state_dir=tmp_path)


@pytest.fixture
def cluster(config):
    task = config.state_dir / "shop" / "abc_0"
    task.mkdir(parents=True)
    (task / "rows").write_text("rows")
    return Cluster()


EARLIEST = AtEnd("earliest")


def reset(config, cluster, topology, start_at=EARLIEST):
    made = Reset(config, cluster, cluster, topology)
    made.perform(made.plan(start_at), lambda line: None)


def assert_reset(config, cluster, at=3):
    assert set(cluster.topics) == {"words", "out", "shop-other"}
    assert cluster.offsets == {TopicPartition("words", 0): at, TopicPartition("words", 1): at}
    assert not (config.state_dir / "shop" / "abc_0").exists()
    assert not AppRecordFile(config.state_dir / "shop").load().is_reset_pending


@pytest.mark.parametrize(("start_at", "at"), [(EARLIEST, 3), (AtEnd("latest"), 90)])
def test_offsets_internal_topics_and_local_state_are_reset(config, cluster, topology, start_at, at):
    reset(config, cluster, topology, start_at)
    assert_reset(config, cluster, at)


@pytest.mark.parametrize("step", ["group", "topics", "offsets"])
def test_a_reset_killed_at_any_step_is_pending_and_is_finished_by_the_next(config, cluster, topology, step):
    cluster.killed_at = step
    with pytest.raises(Killed):
        reset(config, cluster, topology)
    assert AppRecordFile(config.state_dir / "shop").load().is_reset_pending
    cluster.killed_at = None
    reset(config, cluster, None)  # the record is enough now
    assert_reset(config, cluster)


def test_a_shift_counts_from_what_the_reset_that_was_cut_short_has_deleted(config, cluster, topology):
    first, second = TopicPartition("words", 0), TopicPartition("words", 1)
    cluster.offsets = {first: 50, second: 60}
    cluster.killed_at = "topics"
    with pytest.raises(Killed):
        reset(config, cluster, topology, ShiftedBy(-10))
    assert cluster.offsets == {}
    cluster.killed_at = "offsets"
    with pytest.raises(Killed):
        reset(config, cluster, None)  # somebody tries the beginning meanwhile
    cluster.killed_at = None
    reset(config, cluster, None, ShiftedBy(-10))
    assert cluster.offsets == {first: 40, second: 50}
    assert AppRecordFile(config.state_dir / "shop").load().committed_before_reset == ()
    reset(config, cluster, None, ShiftedBy(+5))
    assert cluster.offsets == {first: 45, second: 55}


def test_a_group_with_members_is_refused_and_nothing_changes(config, cluster, topology):
    cluster.group = GroupMembers(is_empty=False, state="stable", members=("shop-0 at 10.0.0.1",))
    with pytest.raises(ResetRefusedError, match="shop-0 at 10.0.0.1"):
        reset(config, cluster, topology)
    assert "shop-counts-changelog" in cluster.topics
    assert cluster.offsets == {TopicPartition("words", 0): 5}
    assert (config.state_dir / "shop" / "abc_0" / "rows").exists()


def test_the_plan_in_words_has_every_topic_and_what_is_left_alone(config, cluster, topology):
    del cluster.topics["words"]
    text = "\n".join(Reset(config, cluster, cluster, topology).plan(EARLIEST).lines())
    assert "input topic words: does not exist, left out" in text
    assert "internal topic shop-by-word-repartition: delete" in text
    assert "internal topic shop-counts-changelog: delete" in text
    assert "shop-other" not in text
    assert "out" not in re.findall(r"topic (\S+):", text)


def test_topics_that_a_pattern_matches_are_input_topics(config, cluster):
    builder = sf.StreamsBuilder()
    text = sf.serdes.string()
    builder.stream(re.compile("wor.*|.*changelog|__.*"), key_serde=text, value_serde=text).group_by_key().count(
        store="counts"
    )
    cluster.topics["__consumer_offsets"] = 1
    plan = Reset(config, cluster, cluster, builder.build()).plan(EARLIEST)
    assert {partition.topic for partition in plan.offsets} == {"words"}


def test_an_app_that_is_not_known_here_is_refused(config, cluster):
    with pytest.raises(ResetRefusedError, match="MODULE:FUNCTION"):
        Reset(config, cluster, cluster, None)
