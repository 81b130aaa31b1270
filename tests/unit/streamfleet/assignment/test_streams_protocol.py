from __future__ import annotations

import pytest

from streamfleet.assignment import user_data
from streamfleet.assignment.snapshot import MemberReport, SubTopologyInfo, TaskKey
from streamfleet.assignment.sticky import StickyTaskAssignor
from streamfleet.assignment.streams_protocol import MOST_PEERS, StreamsProtocol, _peers, digest
from streamfleet.assignment.task_assignor import ProcessAssignment, TaskAssignment
from streamfleet.ids import TopicPartition
from streamfleet.kafka.consumer_protocol import Assignment, Subscription
from streamfleet.kafka.group_protocol import Received, Subscriber


class Fixed:
    """A TaskAssignor that has decided already."""

    def __init__(self, processes, **more):
        self._answer = TaskAssignment(processes=processes, **more)

    def assign(self, state):
        return self._answer

    def on_assignment_computed(self, assignment, error):
        pass


INFO = SubTopologyInfo("content", {"narrow": 1, "wide": 2}, stateful=True)
T0, T1 = INFO.tasks()


def report(name: str = "a", **more) -> MemberReport:
    return MemberReport(
        process_id=name, topology_hash="h", sub_topologies=(INFO,), transactional_id=f"id-{name}", **more
    )


def subscriber(protocol: StreamsProtocol, told: MemberReport, **more) -> Subscriber:
    subscription = protocol.subscribe(told, **{"generation_id": -1, "counter": 0, **more})
    return Subscriber(told.process_id, None, subscription)


def received(protocol: StreamsProtocol, told: MemberReport, plans: dict[str, Assignment]) -> Received:
    return protocol.receive(told, plans[told.process_id])


def test_a_subscription_names_topics_and_owned_partitions_for_kafkas_tools():
    told = report(owned=frozenset({T0, T1}))
    subscription = StreamsProtocol().subscribe(told, generation_id=3, counter=1)
    assert subscription.topics == ("narrow", "wide")
    assert subscription.owned_partitions == (
        TopicPartition("narrow", 0),
        TopicPartition("wide", 0),
        TopicPartition("wide", 1),
    )
    assert user_data.decode_report("m", subscription.user_data).member.generation_id == 3


def test_everybody_gets_a_plan_with_its_tasks_their_partitions_and_all_endpoints():
    leader, follower = StreamsProtocol(), StreamsProtocol()
    a, b = report("a", endpoint="host-a:1"), report("b", endpoint="host-b:1")
    plans = leader.assign([subscriber(leader, a), subscriber(follower, b)])
    got = received(follower, b, plans)
    assert got.plan.active == (T1,)
    assert plans["b"].partitions == (TopicPartition("wide", 1),)
    assert got.plan.endpoints == {"host-a:1": (T0,), "host-b:1": (T1,)}
    assert got.plan.owners == {T0: "id-a", T1: "id-b"}
    assert not got.follow_up and not got.must_rejoin and got.refusal is None


def test_standbys_can_be_found_by_their_endpoint_and_warm_ups_cannot():
    given = {"a": ProcessAssignment(active=frozenset({T0, T1}))}
    given["b"] = ProcessAssignment(standby=frozenset({T0}), warmup=frozenset({T1}))
    leader = StreamsProtocol(assignor=Fixed(given, next_probe_ms=5))
    a, b = report("a", endpoint="host-a:1"), report("b", endpoint="host-b:1")
    plans = leader.assign([subscriber(leader, a), subscriber(leader, b)])
    for told, probe in ((a, 5), (b, None)):
        plan = received(leader, told, plans).plan
        assert plan.standby_endpoints == {"host-b:1": (T0,)}
        assert plan.next_probe_ms == probe
    assert plan.warmup == (T1,)


def test_threads_that_share_an_endpoint_are_listed_together():
    leader = StreamsProtocol()
    told = [report("a", endpoint="host:1"), report("b", endpoint="host:1")]
    plans = leader.assign([subscriber(leader, each) for each in told])
    assert received(leader, told[0], plans).plan.endpoints == {"host:1": (T0, T1)}


def test_only_the_member_that_has_to_let_go_must_rejoin():
    leader, new = StreamsProtocol(assignor=StickyTaskAssignor()), StreamsProtocol()
    a, b = report("a", owned=frozenset({T0, T1})), report("b")
    plans = leader.assign([subscriber(leader, a, generation_id=1), subscriber(new, b)])
    first, second = received(leader, a, plans), received(new, b, plans)
    assert (first.follow_up, first.must_rejoin) == (True, True)
    assert (second.follow_up, second.must_rejoin) == (True, False)


def test_what_was_promised_is_told_in_the_next_report():
    leader, new = StreamsProtocol(assignor=StickyTaskAssignor()), StreamsProtocol()
    a, b = report("a", owned=frozenset({T0, T1})), report("b")
    plans = leader.assign([subscriber(leader, a, generation_id=1), subscriber(new, b)])
    received(new, b, plans)
    again = subscriber(new, b)
    assert user_data.decode_report("b", again.subscription.user_data).member.promised == {T1}


def test_whoever_becomes_leader_knows_whom_to_fence():
    old_leader, next_leader = StreamsProtocol(), StreamsProtocol()
    a, b = report("a"), report("b")
    plans = old_leader.assign([subscriber(old_leader, a), subscriber(next_leader, b)])
    received(next_leader, b, plans)
    alone = report("b", owned=frozenset({T1}))
    plans = next_leader.assign([subscriber(next_leader, alone, generation_id=1)])
    assert received(next_leader, alone, plans).plan.fence == ("id-a",)


def test_a_leader_that_has_only_just_joined_hears_from_the_others_who_is_dead():
    old_leader, witness, new = StreamsProtocol(), StreamsProtocol(), StreamsProtocol()
    a, b, c = report("a"), report("b"), report("c")
    plans = old_leader.assign([subscriber(old_leader, a), subscriber(witness, b)])
    kept = frozenset(received(witness, b, plans).plan.active)
    stays = report("b", owned=kept)
    plans = new.assign([subscriber(witness, stays, generation_id=1), subscriber(new, c)])
    told = {
        name: received(protocol, each, plans).plan for name, protocol, each in (("b", witness, stays), ("c", new, c))
    }
    assert {name: plan.fence for name, plan in told.items() if set(plan.active) - kept} == {"c": ("id-a",)}
    assert told["b"].fence == ()


def test_a_leader_that_was_away_does_not_trust_what_it_knew():
    was_away, others = StreamsProtocol(), StreamsProtocol()
    a = report("a")
    received(was_away, a, was_away.assign([subscriber(was_away, a)]))  # all tasks were its own
    later = others.assign([subscriber(others, report("b")), subscriber(StreamsProtocol(), report("dead"))])
    b = report("b", owned=frozenset(received(others, report("b"), later).plan.active))
    plans = was_away.assign([subscriber(others, b, generation_id=5), subscriber(was_away, a, generation_id=-1)])
    assert received(was_away, a, plans).plan.fence == ("id-dead",)


def test_in_a_group_of_any_size_each_id_is_remembered_by_as_many_as_possible():
    ids = [f"id-{number:03}" for number in range(200)]
    told = [set(_peers(ids, own)) for own in ids]
    assert all(len(each) == MOST_PEERS and own not in each for each, own in zip(told, ids, strict=True))
    assert all(sum(one in each for each in told) == MOST_PEERS for one in ids)
    assert set(_peers(ids[:9], ids[3])) == {*ids[:9]} - {ids[3]}
    assert _peers([], None) == ()


def test_a_member_the_leader_cannot_read_is_refused_and_the_others_go_on():
    leader = StreamsProtocol()
    odd = Subscriber("odd", None, Subscription(("wide",), (), b""))
    plans = leader.assign([subscriber(leader, report("a")), odd])
    assert received(leader, report("a"), plans).plan.active == (T0, T1)
    refusal = leader.receive(report("odd"), plans["odd"]).refusal
    assert refusal is not None and "the leader refused" in refusal


def test_a_wish_to_shut_down_reaches_everybody():
    leader = StreamsProtocol()
    told = [report("a"), report("b", shutdown_requested=True)]
    plans = leader.assign([subscriber(leader, each) for each in told])
    assert all(received(leader, each, plans).plan.shutdown for each in told)


def test_a_restarted_static_member_with_the_same_to_say_takes_its_old_plan_but_not_its_news():
    before = StreamsProtocol("first run")
    dead = report("dead")
    received(before, dead, before.assign([subscriber(before, dead)]))
    stays = subscriber(before, report("b", owned=frozenset({T1})))
    before._assignor = Fixed({"a": ProcessAssignment(active=frozenset({T0, T1})), "b": ProcessAssignment()})
    plans = before.assign([subscriber(before, report("a")), stays])
    kept = received(before, report("a"), plans)
    assert (kept.plan.fence, kept.follow_up) == (("id-dead",), True)
    restarted = received(StreamsProtocol("second run"), report("a"), plans)
    assert restarted.plan.active == (T0,)
    assert (restarted.plan.fence, restarted.follow_up, restarted.must_rejoin) == ((), False, False)


@pytest.mark.parametrize(
    "change",
    [{"endpoint": "host:2"}, {"tags": {"zone": "b"}}, {"rack": "r"}, {"shutdown_requested": True}],
    ids=lambda change: next(iter(change)),
)
def test_a_restarted_static_member_with_something_new_to_say_must_rejoin(change):
    before = StreamsProtocol("first run")
    plans = before.assign([subscriber(before, report("a"))])
    assert received(StreamsProtocol("second run"), report("a", **change), plans).must_rejoin


def test_the_state_of_the_moment_is_not_something_new_to_say():
    moment = report(owned=frozenset({T0}), standby=frozenset({T1}), offset_sums={T0: 5})
    assert digest(moment) == digest(report())
    assert digest(report(endpoint="x")) != digest(report())


def test_every_start_is_another_incarnation():
    told = [StreamsProtocol().subscribe(report(), generation_id=-1, counter=0).user_data for _ in range(2)]
    assert told[0] != told[1]


def test_task_keys_print_readably():
    assert str(TaskKey("content", 3)) == "content_3"
