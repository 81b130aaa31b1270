"""Several members of one streams group, in every order of steps that hypothesis finds, with answers lost on the way."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.streamfleet.kafka.scripted_coordinator import HandClock
from tests.unit.streamfleet.kafka.streams_group.broker_model import ModelBroker, ModelConnector

from streamfleet.kafka.group_events import Assigned, Event, Lost
from streamfleet.kafka.membership import Membership
from streamfleet.kafka.streams_group.client import StreamsGroupClient, StreamsGroupSettings
from streamfleet.kafka.streams_group.heartbeat import MemberFacts
from streamfleet.kafka.streams_group.membership import streams_group_membership
from streamfleet.kafka.streams_group.topology import GroupTopology
from streamfleet.kafka.streams_group.values import BrokerTask, TaskSets

TASKS = 5
MEMBERS = 3


class TaskPlans:
    """Reports and plans are task sets."""

    def owned(self, report: TaskSets) -> TaskSets:
        return report

    def requests_shutdown(self, report: TaskSets) -> bool:
        return False

    def plan(self, tasks: TaskSets, endpoints: object, *, shutdown: bool) -> TaskSets:
        return tasks


class Actor:
    """A member and its StreamThread, which may be slow: it hears of an event, and carries it out later."""

    def __init__(self, broker: ModelBroker, number: int) -> None:
        self.name = f"member-{number}"
        self.clock = HandClock()
        self.connector = ModelConnector(broker, self.clock)
        facts = MemberFacts("app", self.name, f"process-{number}", GroupTopology(0, ()), 60_000)
        settings = StreamsGroupSettings(max_poll_interval_ms=10**9)
        client = StreamsGroupClient(facts, settings, self.connector, self.clock)
        self.membership: Membership[TaskSets, TaskSets] = streams_group_membership(client, TaskPlans(), self.clock)
        self.held: frozenset[BrokerTask] = frozenset()
        self.event: Event[TaskSets] | None = None
        self.started = self.has_left = False

    def start(self) -> None:
        if not self.started and not self.has_left:
            self.started = True
            self.membership.start(TaskSets())

    def step(self) -> None:
        self.clock.pause_ms(max(1, self.membership.run_once()))
        self.event = self.membership.poll() or self.event

    def carry_out(self) -> None:
        event, self.event = self.event, None
        if self.has_left:
            return
        if isinstance(event, Assigned):
            self.held = event.plan.active
        elif isinstance(event, Lost):
            self.held = frozenset()
        if event is not None:
            self.membership.acknowledge(event, TaskSets(self.held))

    def leave(self) -> None:
        """As a StreamThread that stops: tasks are closed first."""
        self.held, self.has_left = frozenset(), True
        self.membership.leave()


ACTIONS = st.tuples(
    st.sampled_from(["step"] * 30 + ["carry_out"] * 6 + ["start"] * 3 + ["lose"] * 2 + ["heal"] * 3 + ["leave"]),
    st.integers(0, MEMBERS - 1),
)
"""Leaving is rare, or nobody would be there to see what follows."""


def assert_disjoint(actors: list[Actor]) -> None:
    held = [task for actor in actors for task in actor.held]
    assert len(held) == len(set(held)), f"a task is in two places: {sorted(held)}"


@given(st.lists(ACTIONS, min_size=60, max_size=200))
def test_no_task_is_ever_in_two_places_and_in_the_end_all_are_somewhere(actions):
    broker = ModelBroker(TASKS)
    actors = [Actor(broker, number) for number in range(MEMBERS)]
    for action, number in actions:
        actor = actors[number]
        if action in ("lose", "heal"):
            actor.connector.loses = action == "lose"
        else:
            getattr(actor, action)()
        assert_disjoint(actors)
    staying = [actor for actor in actors if not actor.has_left]
    for actor in actors:
        actor.connector.loses = False
        actor.start()
    for _ in range(60):
        for actor in actors:
            actor.step()
            actor.carry_out()
            assert_disjoint(actors)
    assert len(broker.members) == len(staying)
    for actor in staying:
        assert actor.held == broker.target(actor.name)
