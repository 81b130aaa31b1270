"""Warm-ups and probing rebalances on a real broker, with StreamThreads played by hand: tasks go where their state is ready."""

from __future__ import annotations

import pytest
from tests.integration.streamfleet.kafka.group_actors import HandThread, connector, create_topic, settle, unique

from streamfleet.assignment.snapshot import AssignorSettings, MemberReport, SubTopologyInfo, TaskKey
from streamfleet.assignment.streams_protocol import StreamsProtocol
from streamfleet.records import ProducerRecord

END = 50
SETTINGS = AssignorSettings(acceptable_recovery_lag=10, probing_interval_ms=400)
"""Apps cannot probe more often than once a minute: the limit is StreamsConfig's, so that a test need not wait as long."""


class Warming(HandThread):
    """One that keeps copies, and says how far they are."""

    def __init__(self, bootstrap: str, group: str, topics: tuple[str, str], name: str, cluster) -> None:
        self.changelog = topics[1]
        self.copies: set[TaskKey] = set()
        self.sums: dict[TaskKey, int] = {}
        protocol = StreamsProtocol(settings=SETTINGS, cluster=cluster)
        super().__init__(connector(bootstrap), group, topics[0], name, protocol=protocol)

    def report(self) -> MemberReport:
        info = SubTopologyInfo("content", {self.topic: self.partitions}, True, (self.changelog,))
        return MemberReport(
            process_id=self.name,
            topology_hash="hash",
            sub_topologies=(info,),
            owned=frozenset(self.tasks),
            standby=frozenset(self.copies),
            offset_sums=self.sums,
        )

    def step(self) -> None:
        super().step()
        if self.plans:
            self.copies = {*self.plans[-1].plan.standby, *self.plans[-1].plan.warmup}
            for task in self.tasks:
                assert task not in self.sums or self.sums[task] >= END - 10, "it was given before it was ready"
                self.sums[task] = END

    @property
    def last_plan(self):
        return self.plans[-1].plan if self.plans else None


@pytest.fixture
def topics(broker, clients):
    source, changelog = create_topic(broker.bootstrap_servers), create_topic(broker.bootstrap_servers)
    producer = clients.producer()
    for partition in range(4):
        for number in range(END):
            producer.send(ProducerRecord(changelog, b"k%d" % number, b"v", partition=partition, timestamp=0))
    producer.flush(20_000)
    return source, changelog


def test_tasks_move_one_by_one_to_new_members_that_are_ready_and_nothing_is_asked_after_that(broker, admin, topics):
    group = unique("group")
    threads = [Warming(broker.bootstrap_servers, group, topics, name, admin) for name in "abc"]
    old, *new = threads
    settle(old, until=lambda: len(old.tasks) == 4)
    assert old.last_plan.next_probe_ms is None

    settle(*threads, until=lambda: sum(len(each.copies) for each in new) == 2)
    generation = old.plans[-1].generation_id
    settle(*threads, until=lambda: old.plans[-1].generation_id >= generation + 2)  # it was probed, and nobody was ready
    assert len(old.tasks) == 4
    assert sum(each.last_plan.next_probe_ms is not None for each in threads) == 1

    for each in new:
        each.sums = dict.fromkeys(each.copies, END - 10)
    settle(*threads, until=lambda: sorted(len(each.tasks) for each in threads) == [1, 1, 2])
    settle(*threads, until=lambda: all(each.last_plan.next_probe_ms is None for each in threads))
    assert not any(each.copies for each in threads)
    for each in threads:
        each.leave()
