"""A task that wanders between the threads of two processes, as active and as copy, in every order: its counts are always right."""

import shutil
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.streamfleet.thread.conftest import Cluster, Member

from streamfleet.ids import TaskId
from streamfleet.state.state_directory import StateDirectory

TASK = TaskId(0, 0)
PROCESSES = ("one", "one", "two")
"""Of the three members: the first two are threads of one process, and share its directory."""

members = st.integers(0, len(PROCESSES) - 1)


@dataclass(frozen=True)
class Round:
    """A plan, what is done under it, and how it ends."""

    active: int
    copy: int | None
    first: int
    """Who hears of the plan first."""
    keys: str
    """Written to the input, and processed."""
    commits: bool
    steps: str
    """Members whose StateUpdaters make a step afterwards."""
    ends_in_loss: bool


rounds = st.builds(
    Round,
    members,
    members | st.none(),
    members,
    st.text("abc", max_size=3),
    st.booleans(),
    st.text("012", max_size=3),
    st.booleans(),
)


class Group:
    """Three members, and who was told to have the task."""

    def __init__(self, cluster, member):
        self.members = [member(process) for process in PROCESSES]
        self.cluster = cluster
        self.active = None
        self.written = Counter()

    def run(self, what):
        self.plan(what)
        self.process(self.members[what.active], what.keys, commits=what.commits)
        for number in what.steps:
            self.members[int(number)].step(1)
        if what.ends_in_loss:
            self.members[what.active].tasks.drop_all()
            self.active = None

    def plan(self, what):
        """Two rebalances, as the group does it: who has the task lets go first."""
        copy = what.copy if what.copy is not None and PROCESSES[what.copy] != PROCESSES[what.active] else None
        order = [what.first, *(n for n in range(len(PROCESSES)) if n != what.first)]
        for active in (what.active if what.active == self.active else None, what.active):
            for number in order:
                self.members[number].assign([0] if number == active else [], [0] if number == copy else [])
        self.active = what.active
        for each in self.members:
            each.step(2)
        assert [n for n, member in enumerate(self.members) if member.tasks.running] == [what.active]

    def process(self, member, keys, *, commits):
        for key in keys:
            self.cluster.write("in", 0, key.encode(), b"x")
            self.written[key] += 1
        if commits:
            member.process()
        else:
            member.tasks.add_records(member.consumer.poll_batch(0, 1000), 1000)
            while any(task.process() for task in member.tasks.running):
                pass

    def check(self, last):
        """Whoever has the task, and a copy of it, under the last plan: has all of it."""
        self.plan(last)
        for member in self.members:
            if member.tasks.running:
                member.process()
        for member in self.members:
            member.step(2)
            if TASK in member.tasks.tasks or TASK in member.tasks.standbys.tasks:
                assert {key: member.count_of(key) or 0 for key in "abc"} == {key: self.written[key] for key in "abc"}


@pytest.fixture
def group_of(tmp_path_factory):
    """Every example has a cluster and directories of its own."""

    @contextmanager
    def made():
        root, cluster = tmp_path_factory.mktemp("group"), Cluster()
        directories = {process: StateDirectory(root / process, "app") for process in PROCESSES}
        for directory in directories.values():
            directory.path.mkdir(parents=True)
        group = Group(cluster, lambda process: Member(cluster, directories[process]))
        try:
            yield group
        finally:
            for member in group.members:
                member.close()
            shutil.rmtree(root)

    return made


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.lists(rounds, min_size=2, max_size=6))
def test_counts_are_right_wherever_the_task_goes(group_of, history):
    with group_of() as group:
        for what in history:
            group.run(what)
        group.check(history[-1])
