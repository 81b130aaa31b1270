"""Numbers for a plan's cost, from rows of the registry."""

from datetime import UTC, datetime, timedelta

from tests.unit.streamfleet_platform.simulated_world import locks_of

from streamfleet_platform.reconcile.measured import restart_seconds, upgrade_facts
from streamfleet_platform.registry.tables import App, Step
from streamfleet_platform.topologies.plan_cost import Figure

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def facts(observed, restart=None, limit=None):
    app = App(slots=2, observed=observed)
    lock = locks_of("one", "topology")
    return upgrade_facts(app, lock, restart, restore_limit=limit, static_members=True, downstream=frozenset())


def test_what_was_seen_is_measured():
    found = facts(
        {
            "records_per_second": 300.0,
            "workers": [{"busy_share": 0.25}, {"busy_share": 0.5}, {"busy_share": None}],
            "restore_bytes_per_second": 8e6,
            "topics": [{"name": "one-in", "end_offsets": 70}, {"name": "one-out", "end_offsets": 9}],
        },
        restart=7.5,
    )
    assert found.capacity_per_second == Figure(800.0)
    assert found.restore_bytes_per_second == Figure(16e6)
    assert (found.restart_seconds, found.input_records) == (Figure(7.5), 70)
    assert facts({"restore_bytes_per_second": 8e6}, limit=10**6).restore_bytes_per_second == Figure(1e6)


def test_what_was_not_seen_is_assumed_and_says_so():
    found = facts({"records_per_second": 300.0})
    assert found.capacity_per_second == Figure(600.0, is_measured=False)
    assert found.restore_bytes_per_second == Figure(50e6, is_measured=False)
    assert (found.restart_seconds, found.input_records) == (Figure(5.0, is_measured=False), None)
    assert facts({}).capacity_per_second is None


def step(name, start, end, **memory):
    began, ended = BEGAN + timedelta(seconds=start), BEGAN + timedelta(seconds=end)
    return Step(name=name, state="done", started_at=began, ended_at=ended, memory=memory)


def test_a_restart_takes_until_all_is_well_without_the_time_it_has_to_stay_so():
    held = (BEGAN + timedelta(seconds=31)).isoformat()
    steps = [
        step("replace-slot", 0, 3),
        step("pass-gate", 3, 9),
        step("replace-slot", 20, 21),
        step("pass-gate", 21, 151, well_since=held),
    ]
    assert restart_seconds(steps) == 11
    assert restart_seconds([step("start-slot", 0, 1), step("start-slot", 1, 2), step("wait-until-well", 2, 8)]) == 8
    assert restart_seconds([step("replace-slot", 0, 3), step("switch", 3, 4)]) is None
