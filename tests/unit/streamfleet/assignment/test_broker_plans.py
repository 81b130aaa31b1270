"""Plans of the broker in the words of a StreamThread, and its reports in those of the broker."""

from __future__ import annotations

import pytest

from streamfleet.assignment.broker_plans import BrokerPlans
from streamfleet.assignment.snapshot import MemberReport, TaskKey
from streamfleet.ids import TopicPartition
from streamfleet.kafka.address import Address
from streamfleet.kafka.errors import GroupFatalError
from streamfleet.kafka.streams_group.values import BrokerTask, EndpointPartitions, TaskSets

PLANS = BrokerPlans({0: "first", 10: "tenth"}, {0: ("in",), 10: ("repartition", "in-2")})


def test_a_report_tells_what_is_run_under_the_broker_s_names():
    report = MemberReport(
        process_id="p",
        topology_hash="h",
        sub_topologies=(),
        owned=frozenset({TaskKey("tenth", 1), TaskKey("first", 0)}),
        standby=frozenset({TaskKey("tenth", 0)}),
        shutdown_requested=True,
    )
    active = frozenset({BrokerTask("10", 1), BrokerTask("0", 0)})
    assert PLANS.owned(report) == TaskSets(active, frozenset({BrokerTask("10", 0)}))
    assert PLANS.requests_shutdown(report)


def test_a_plan_tells_tasks_by_what_they_are_and_endpoints_by_task():
    tasks = TaskSets(
        frozenset({BrokerTask("10", 1), BrokerTask("0", 2)}),
        frozenset({BrokerTask("10", 0)}),
        frozenset({BrokerTask("0", 1)}),
    )
    read = frozenset({TopicPartition("repartition", 1), TopicPartition("in-2", 1), TopicPartition("in", 2)})
    there = EndpointPartitions(Address("there", 80), read, frozenset({TopicPartition("in-2", 0)}))
    plan = PLANS.plan(tasks, [there], shutdown=False)
    assert plan.active == (TaskKey("first", 2), TaskKey("tenth", 1))
    assert (plan.standby, plan.warmup) == ((TaskKey("tenth", 0),), (TaskKey("first", 1),))
    assert plan.endpoints == {"there:80": (TaskKey("first", 2), TaskKey("tenth", 1))}
    assert plan.standby_endpoints == {"there:80": (TaskKey("tenth", 0),)}
    assert not plan.shutdown and not plan.follow_up and plan.fence == ()


def test_members_with_one_endpoint_are_threads_of_one_process():
    here = Address("here", 80)
    first = EndpointPartitions(here, frozenset({TopicPartition("in", 0)}), frozenset({TopicPartition("in-2", 1)}))
    second = EndpointPartitions(here, frozenset({TopicPartition("in", 1)}), frozenset({TopicPartition("in-2", 0)}))
    plan = PLANS.plan(TaskSets(), [first, second], shutdown=False)
    assert plan.endpoints == {"here:80": (TaskKey("first", 0), TaskKey("first", 1))}
    assert plan.standby_endpoints == {"here:80": (TaskKey("tenth", 0), TaskKey("tenth", 1))}


def test_a_task_of_another_topology_is_fatal():
    with pytest.raises(GroupFatalError, match="does not have: 3"):
        PLANS.plan(TaskSets(frozenset({BrokerTask("3", 0)})), [], shutdown=False)
