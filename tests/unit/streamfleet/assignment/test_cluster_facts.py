"""What the leader asks the cluster, and what it does with the answer or without one."""

from __future__ import annotations

from streamfleet.assignment.cluster_facts import ClusterFacts, cluster_facts
from streamfleet.assignment.high_availability import BLIND_PROBE_MS
from streamfleet.assignment.snapshot import AssignorSettings, Member, MemberReport, SubTopologyInfo, TaskKey
from streamfleet.assignment.streams_protocol import StreamsProtocol
from streamfleet.ids import TopicPartition
from streamfleet.kafka.client_errors import BrokerUnavailableError
from streamfleet.kafka.group_protocol import Subscriber
from streamfleet.ports import OffsetKind

COUNTS = SubTopologyInfo("counts", {"words": 2}, True, ("counts-log", "extra-log"))
TABLE = SubTopologyInfo("table", {"prices": 1, "orders": 2}, True, ("prices",))
PLAIN = SubTopologyInfo("plain", {"lines": 2}, False)


class Cluster:
    """Every partition has `end` records; `committed` of some were processed; racks by topic."""

    def __init__(self, end: int = 100_000, racks: dict | None = None, committed: dict | None = None) -> None:
        self.end = end
        self.done = committed or {}
        self.racks = racks
        self.away = False
        self.asked: list[TopicPartition] = []

    def list_offsets(self, partitions, kind):
        assert kind is OffsetKind.HIGH_WATERMARK
        self._answer()
        self.asked += sorted(partitions)
        return dict.fromkeys(partitions, self.end)

    def committed(self, partitions):
        self._answer()
        self.asked += sorted(partitions)
        return {partition: self.done[partition] for partition in partitions if partition in self.done}

    def partition_racks(self, names):
        if self.racks is None:
            raise BrokerUnavailableError("no answer", code="_TIMED_OUT")
        return self.racks

    def _answer(self):
        if self.away:
            raise BrokerUnavailableError("no answer", code="_TIMED_OUT")


def report(name: str = "a", *infos: SubTopologyInfo, **more) -> MemberReport:
    return MemberReport(process_id=name, topology_hash="h", sub_topologies=infos or (COUNTS,), **more)


def asked(cluster: Cluster, *infos: SubTopologyInfo, **settings) -> ClusterFacts:
    return cluster_facts(cluster, [Member(member_id="m", report=report("a", *infos))], AssignorSettings(**settings))


def test_ends_are_summed_over_the_changelogs_of_each_task():
    cluster = Cluster()
    facts = asked(cluster, COUNTS, PLAIN)
    assert facts.end_offset_sums == dict.fromkeys(COUNTS.tasks(), 200_000)
    assert cluster.asked == [TopicPartition(t, p) for t in ("counts-log", "extra-log") for p in (0, 1)]


def test_a_source_that_is_a_changelog_is_asked_only_for_the_partitions_it_has():
    cluster = Cluster(committed={TopicPartition("prices", 0): 70})
    assert asked(cluster, TABLE).end_offset_sums == {TaskKey("table", 0): 70}
    assert cluster.asked == [TopicPartition("prices", 0)]


def test_state_made_of_an_input_topic_ends_where_its_processing_does():
    mixed = SubTopologyInfo("mixed", {"prices": 2}, True, ("prices", "counts-log"))
    cluster = Cluster(committed={TopicPartition("prices", 0): 70})
    assert asked(cluster, mixed).end_offset_sums == {TaskKey("mixed", 0): 100_070, TaskKey("mixed", 1): 100_000}


def test_a_copy_of_an_input_topic_moves_whatever_waits_in_the_topic_behind_it():
    table = SubTopologyInfo("table", {"prices": 2}, True, ("prices",))
    both = list(table.tasks())
    cluster = Cluster(committed={TopicPartition("prices", number): 70 for number in (0, 1)})
    leader, new = StreamsProtocol(cluster=cluster), StreamsProtocol(cluster=cluster)
    told = {
        "a": report("a", table, owned=frozenset(both), offset_sums=dict.fromkeys(both, 70)),
        "b": report("b", table, standby=frozenset(both[1:]), offset_sums={both[1]: 70}),
    }
    subscribers = [
        Subscriber(name, None, protocol.subscribe(told[name], generation_id=1, counter=0))
        for name, protocol in (("a", leader), ("b", new))
    ]
    first = leader.receive(told["a"], leader.assign(subscribers)["a"])
    assert set(first.plan.active) == {both[0]} and first.follow_up


def test_without_state_nothing_is_asked():
    cluster = Cluster()
    assert asked(cluster, PLAIN) == ClusterFacts(end_offset_sums={}) and not cluster.asked


def test_a_cluster_that_does_not_answer_leaves_the_ends_unknown():
    cluster = Cluster()
    cluster.away = True
    assert asked(cluster).end_offset_sums is None


def test_racks_are_asked_for_only_if_they_count_and_are_not_needed():
    racks = {TopicPartition("words", 0): frozenset({"r"})}
    assert asked(Cluster(racks=racks)).partition_racks == {}
    assert asked(Cluster(racks=racks), rack_aware_strategy="min_traffic").partition_racks == racks
    without = asked(Cluster(), rack_aware_strategy="min_traffic")
    assert without.partition_racks == {} and without.end_offset_sums


def test_the_leader_warms_a_new_member_up_and_waits_if_the_cluster_does_not_answer():
    cluster = Cluster()
    for away, warmups, probe in ((False, 1, 600_000), (True, 0, BLIND_PROBE_MS)):
        cluster.away = away
        leader, new = StreamsProtocol(cluster=cluster), StreamsProtocol(cluster=cluster)
        told = {"a": report("a", owned=frozenset(COUNTS.tasks())), "b": report("b")}
        subscribers = [
            Subscriber(name, None, protocol.subscribe(told[name], generation_id=1, counter=0))
            for name, protocol in (("a", leader), ("b", new))
        ]
        plans = leader.assign(subscribers)
        first, second = leader.receive(told["a"], plans["a"]), new.receive(told["b"], plans["b"])
        assert set(first.plan.active) == set(COUNTS.tasks()) and not first.follow_up
        assert len(second.plan.warmup) == warmups
        assert (first.next_probe_ms, second.next_probe_ms) == (probe, None)
