"""`task.assignor.class` on the real broker: an app's own assignor, the sticky one, and an assignor that is wrong."""

import time

import pytest

import streamfleet as sf
from streamfleet.assignment import AssignmentError, TaskAssignment
from streamfleet.assignment.building_blocks import assembled, place_standbys, previous_places
from streamfleet.kafka_streams import ClientState, KafkaStreams

LONG = sf.serdes.long()
KEYS = [f"k{number}" for number in range(200)]


class TheFirstRunsAll:
    """What runs stays where it is; all the rest goes to whoever has something already, and the standbys to the others."""

    def assign(self, state):
        places = previous_places(state)
        chosen = min(places.values(), default=min(state.processes))
        active = {task: places.get(task, chosen) for task in state.tasks}
        return assembled(state, active, place_standbys(state, active))


class ForgetsATask(TheFirstRunsAll):
    """Once it is told to."""

    def __init__(self):
        self.forgets = False
        self.told = []

    def assign(self, state):
        if not self.forgets:
            return super().assign(state)
        nothing = assembled(state, {}, {})
        return TaskAssignment(processes=nothing.processes)

    def on_assignment_computed(self, assignment, error):
        self.told.append(error)


def counting(bench):
    source, counts = bench.topic("in", 2), bench.topic("counts", 2)
    builder = sf.StreamsBuilder()
    builder.stream(source).group_by_key().count(store="counts").to_stream().to(counts, value_serde=LONG)
    return builder.build(), source, counts


def wait_for(condition, timeout_seconds=60):
    deadline = time.monotonic() + timeout_seconds
    while not condition():
        assert time.monotonic() < deadline, "not reached in time"
        time.sleep(0.02)


def running(streams):
    return {task.id for thread in streams.threads() for task in thread.tasks if task.phase == "running"}


def copies(streams):
    return {copy.id: copy.kind for thread in streams.threads() for copy in thread.standbys}


def counted(bench, counts, times):
    expected = {key.encode(): times for key in KEYS}
    bench.read(counts, lambda got: {key: int.from_bytes(value, "big") for key, value in got} == expected)


@pytest.mark.parametrize("setting", [f"{__name__}:TheFirstRunsAll", TheFirstRunsAll()], ids=["by name", "an object"])
def test_an_app_decides_by_itself_who_runs_what(bench, setting):
    topology, source, counts = counting(bench)
    more = {"task_assignor": setting, "num_standby_replicas": 1}
    bench.write(source, [(key, "x") for key in KEYS])
    with bench.running(topology, bench.config("first", **more)) as first:
        counted(bench, counts, 1)
        with bench.running(topology, bench.config("second", **more)) as second:
            wait_for(lambda: copies(second) == {"0_0": "standby", "0_1": "standby"})
            second.probe()  # the built-in ones would share the tasks by now
            rebalances = rebalances_of(first)
            wait_for(lambda: rebalances_of(first) > rebalances)
            assert running(first) == {"0_0", "0_1"} and not running(second)
            first.close()
            wait_for(lambda: running(second) == {"0_0", "0_1"})
            bench.write(source, [(key, "x") for key in KEYS])
            counted(bench, counts, 2)


def rebalances_of(streams):
    return sum(counts.rebalances for counts in streams.metrics().threads.values())


def restored_by(streams):
    return sum(counts.restored_records for counts in streams.metrics().threads.values())


class HeardOfCopies(sf.StandbyUpdateListener):
    def __init__(self):
        self.copies = []

    def on_update_start(self, partition, store, starting_offset):
        self.copies.append(partition)


def test_with_the_sticky_assignor_a_task_moves_at_once_and_restores_where_it_arrives(bench):
    topology, source, counts = counting(bench)
    settings = {"task_assignor": "sticky", "acceptable_recovery_lag": 0}  # which is of no interest to it
    bench.write(source, [(key, "x") for key in KEYS])
    with bench.running(topology, bench.config("first", **settings)) as first:
        counted(bench, counts, 1)
        heard = HeardOfCopies()
        second = KafkaStreams(topology, bench.config("second", **settings))
        second.set_standby_update_listener(heard)
        with second:
            second.start()
            wait_for(lambda: len(running(first)) == len(running(second)) == 1)
            assert heard.copies == [] and restored_by(second) > 0
            bench.write(source, [(key, "x") for key in KEYS])
            counted(bench, counts, 2)


def test_a_leader_whose_assignor_is_wrong_fails_and_says_why_and_another_one_leads(bench):
    topology, source, counts = counting(bench)
    wrong = ForgetsATask()
    bench.write(source, [(key, "x") for key in KEYS])
    with KafkaStreams(topology, bench.config("first", task_assignor=wrong)) as first:
        first.start()
        first.wait_until_running(30)
        counted(bench, counts, 1)
        with bench.running(topology, bench.config("second")) as second:
            wait_for(lambda: [thread.leads_group for thread in first.threads()] == [True])
            wrong.forgets = True
            second.probe()
            wait_for(lambda: first.state is ClientState.ERROR)
            assert wrong.told[-1] is AssignmentError.ACTIVE_TASK_NOT_ASSIGNED
            assert "ForgetsATask cannot be carried out: an active task is given to nobody" in str(first.failure)

            wait_for(lambda: running(second) == {"0_0", "0_1"})
            assert [thread.leads_group for thread in second.threads()] == [True]
            bench.write(source, [(key, "x") for key in KEYS])
            counted(bench, counts, 2)
