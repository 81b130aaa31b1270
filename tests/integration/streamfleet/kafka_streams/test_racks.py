"""Racks of brokers and of processes: tasks run where the leader of their input is."""

import shutil
import tempfile
import time
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic
from tests.integration.streamfleet.kafka_streams.conftest import Bench

import streamfleet as sf
from streamfleet.assignment import HighAvailabilityTaskAssignor
from streamfleet.ids import TopicPartition
from streamfleet.kafka_streams import KafkaStreams
from streamfleet_devbroker.cluster import Cluster, ClusterSpec

RACKS = {1: "north", 2: "south", 3: "west"}
"""By broker."""
ALL_RACKS = frozenset(RACKS.values())
BROKERS = [1, 1, 2, 2]
"""Which has each input partition. Tasks that are dealt out in turns do not hit that."""


@pytest.fixture(scope="module")
def racked_cluster():
    """Every node of a cluster has the same settings: the racks are written when it has been made, and read at the next start."""
    directory = Path(tempfile.mkdtemp(prefix="streamfleet-racks-"))
    try:
        with Cluster.start(ClusterSpec(directory, nodes=3)) as cluster:
            for node in cluster.nodes:
                cluster.kill_node(node.node_id)
                with node.settings_path.open("a") as settings:
                    settings.write(f"broker.rack={RACKS[node.node_id]}\n")
                cluster.start_node(node.node_id)
            yield cluster
    finally:
        shutil.rmtree(directory, ignore_errors=True)


class Listening(HighAvailabilityTaskAssignor):
    """Keeps what the leader knew when it decided."""

    def __init__(self):
        self.states = []

    def assign(self, state):
        self.states.append(state)
        return super().assign(state)


def counting(bench):
    source = f"{bench.app}-in"
    topic = NewTopic(source, len(BROKERS), replica_assignment=[[broker] for broker in BROKERS])
    for future in bench.admin.create_topics([topic]).values():
        future.result(10)
    builder = sf.StreamsBuilder()
    builder.stream(source).group_by_key().count(store="counts")
    return builder.build(), source


def running(streams):
    return {task.id for thread in streams.threads() for task in thread.tasks if task.phase == "running"}


def wait_for(condition, timeout_seconds=60):
    deadline = time.monotonic() + timeout_seconds
    while not condition():
        assert time.monotonic() < deadline, "not reached in time"
        time.sleep(0.02)


@pytest.mark.timeout(240)
def test_tasks_run_in_the_rack_of_their_input(racked_cluster, tmp_path):
    bench = Bench(racked_cluster, tmp_path)
    topology, source = counting(bench)
    heard = Listening()

    def config(rack, **more):
        return bench.config(
            rack,
            client_rack=rack,
            rack_aware_assignment_strategy="min_traffic",
            rack_aware_assignment_non_overlap_cost=3,
            task_assignor=heard,
            **more,
        )

    with bench.running(topology, config("north")) as north:
        wait_for(lambda: len(running(north)) == 4)
        with KafkaStreams(topology, config("south")) as south:
            south.start()
            wait_for(lambda: running(north) == {"0_0", "0_1"} and running(south) == {"0_2", "0_3"})
            known = heard.states[-1]  # before the group hears that one leaves

    assert {process.rack for process in known.processes.values()} == {"north", "south"}
    racks = {p: known.partition_racks[p] for task in known.tasks.values() for p in task.sources}
    assert racks == {TopicPartition(source, n): {RACKS[broker]} for n, broker in enumerate(BROKERS)}
    assert {known.partition_racks[p] for task in known.tasks.values() for p in task.changelogs} == {ALL_RACKS}
    assert known.settings.rack_costs(10, 1) == (10, 3)  # the assignor's own, and the app's
