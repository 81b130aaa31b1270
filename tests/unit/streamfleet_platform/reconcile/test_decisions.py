"""Decisions of the real reconciler about apps under measurement, over a simulated world: what one knows of those before it."""

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
import yaml
from tests.unit.streamfleet_platform.scaling.measured_apps import chain
from tests.unit.streamfleet_platform.simulated_world import APP, FLEET, Lab

from streamfleet_platform.errors import InvalidDefinitionError
from streamfleet_platform.model.app_definition import AppDefinition
from streamfleet_platform.model.app_policies import Scale
from streamfleet_platform.model.fleet_definition import RestoreBudget
from streamfleet_platform.model.operation import OperationKind
from streamfleet_platform.operations.work import as_tuples
from streamfleet_platform.reconcile.decisions import bounds_of
from streamfleet_platform.scaling.measures import Bounds


class Measured:
    """What the workers of an app say, as far as scaling is concerned: it lags, or keeps up."""

    def __init__(self, lab):
        self._lab = lab
        self._observe = lab.observer.observe
        self.lags = {}
        self.rates = {}
        self._slots = {}
        lab.observer.observe = self.observe

    def observe(self, asked):
        seen = self._observe(asked)
        return {name: self._measured(name, sight) for name, sight in seen.items()}

    def _measured(self, name, sight):
        slots = sum(worker.is_up for worker in sight.workers.values())
        if not slots or slots != len(sight.workers):
            return sight
        lag = self.lags.get(name, 0)
        measures = chain(lag=lag, rate=10_000 if lag else 100, slots=slots)
        known = self._slots.get(name, (slots, sight.at - timedelta(hours=1)))
        self._slots[name] = known if known[0] == slots else (slots, sight.at)
        measures = replace(measures, taken_at=sight.at, stable_since=self._slots[name][1])
        return replace(sight, measures=measures, records_per_second=self.rates.get(name, 5000.0))


class ScalingLab(Lab):
    def budget(self, slots):
        (self.source / "fleet.yaml").write_text(FLEET + f"  budgets: {{slots: {slots}}}\n")

    def compile(self, code, entrypoint, **options):
        self.names = {name.stem: name.stem for name in (self.source / "apps").glob("*.yaml")}
        return super().compile(code, entrypoint, **options)

    def several(self, *names, **more):
        for name in names:
            self.declare(name, entry=name, **more.get(name, {}))
        self.start()
        for operation in self.apply().operations:
            self.run(operation.id)
        self.step()

    def decided(self):
        return {decision.app: decision for decision in self.fleet.decisions().scaling}

    def next_decisions(self):
        self.clock.advance(6)
        self.server.loop.step()
        return self.decided()

    def sensor(self):
        """Acts on every decision, as Dagster's does."""
        begun = []
        for decision in self.decided().values():
            if decision.action != "hold" and not decision.is_advice:
                params = {"slots": decision.slots, "reason": decision.reason}
                begun.append(self.operate(OperationKind.SCALE, decision.app, decision.intent_id, **params))
        return begun


@pytest.fixture
def lab(tmp_path):
    lab = ScalingLab(tmp_path)
    yield lab
    lab.server.close()


def crashing(lab, first_slot):
    """From here on, workers of slots from that one on crash at their start."""
    start = lab.runtime.start

    def started(spec, *, token):
        state = start(spec, token=token)
        if spec.slot >= first_slot:
            for _ in range(3):
                lab.runtime.end(spec.app, spec.slot, 1, "no licence for so many")
        return state

    lab.runtime.start = started
    return start


def test_a_scale_that_failed_is_not_repeated_at_once_and_every_failure_doubles_the_pause(lab):
    lab.several("one")
    Measured(lab).lags["one"] = 3_000_000
    start, began = crashing(lab, 1), []
    for _ in range(100):
        lab.clock.advance(20)
        lab.server.loop.step()
        for operation in lab.sensor():
            began.append(lab.clock.now)
            assert lab.run(operation.id).state == "rolled_back"
        if len(began) == 4:
            break
        waiting = lab.decided()["one"]
        if waiting.action == "hold" and began:
            assert waiting.cause == "backing-off" and waiting.slots == waiting.current == 1
    pauses = [(after - before).total_seconds() for before, after in pairwise(began)]
    assert [round(pause / 60) for pause in pauses] == [2, 4, 8], pauses
    told = lab.next_decisions()["one"].reason
    assert "failed 4 times" in told and "no licence for so many" in told and "total load" in told
    lab.runtime.start = start
    lab.clock.advance(3600)
    lab.next_decisions()
    [operation] = lab.sensor()
    assert lab.run(operation.id).state == "succeeded" and lab.fleet.app("one").slots == 8


def test_failures_are_remembered_by_the_next_server_and_forgotten_with_another_revision(lab):
    lab.several("one")
    measured = Measured(lab)
    measured.lags["one"] = 3_000_000
    start = crashing(lab, 1)
    lab.next_decisions()
    [operation] = lab.sensor()
    lab.run(operation.id)
    lab.runtime.start = start
    assert lab.next_decisions()["one"].cause == "backing-off"
    lab.kill()
    lab.start()
    assert lab.next_decisions()["one"].cause == "backing-off"
    lab.declare("one", entry="one", more="health: {noProgress: 9m}")
    [upgrade] = lab.apply().operations
    lab.run(upgrade.id)
    assert lab.next_decisions()["one"].action == "up"


def test_what_a_person_calls_off_is_not_decided_again_at_once(lab):
    lab.several("one")
    Measured(lab).lags["one"] = 3_000_000
    lab.next_decisions()
    [operation] = lab.sensor()
    lab.fleet.cancel(operation.id, actor="ann")
    waiting = lab.next_decisions()["one"]
    assert (waiting.action, waiting.cause) == ("hold", "backing-off") and "cancelled" in waiting.reason


def test_a_scale_up_that_brought_nothing_is_named_and_not_repeated(lab):
    lab.several("one")
    measured = Measured(lab)
    measured.lags["one"], measured.rates["one"] = 3_000_000, 4_000.0
    (lab.source / "apps" / "one.yaml").write_text(
        (lab.source / "apps" / "one.yaml").read_text().replace("max: 8", "max: 24")
    )
    lab.next_decisions()
    lab.run(lab.operate(OperationKind.UPGRADE).id)
    decision = lab.next_decisions()["one"]
    assert (decision.action, decision.slots) == ("up", 12)
    [operation] = lab.sensor()
    lab.run(operation.id)
    measured.lags["one"] = 300_000_000  # it is no faster than before, and falls behind
    for _ in range(15):
        decision = lab.next_decisions()["one"]
    assert (decision.action, decision.cause) == ("hold", "ineffective")
    assert "the last scale-up brought 0 of " in decision.reason
    measured.lags["one"] = 0  # it has caught up: what was said of it no longer holds
    lab.next_decisions()
    measured.lags["one"] = 300_000_000
    assert lab.next_decisions()["one"].action == "up"


def test_a_scale_up_that_helped_may_be_followed_by_another(lab):
    lab.several("one")
    measured = Measured(lab)
    measured.lags["one"], measured.rates["one"] = 3_000_000, 2_000.0
    lab.next_decisions()
    [operation] = lab.sensor()
    lab.run(operation.id)
    measured.rates["one"] = 9_000.0
    for _ in range(15):
        decision = lab.next_decisions()["one"]
    assert decision.cause == "quota-limited", "not ineffective: 8 slots are what its definition allows"


def test_the_fleets_budget_is_shared_by_all_decisions_of_a_pass(lab):
    lab.budget(12)
    lab.several("one", "two", "three")
    measured = Measured(lab)
    for name in ("one", "two", "three"):
        measured.lags[name] = 3_000_000
    for _ in range(3):
        decisions = lab.next_decisions()
        wanted = sum(max(decision.slots, decision.current) for decision in decisions.values())
        assert wanted <= 12, {name: decision.slots for name, decision in decisions.items()}
    assert max(decision.slots for decision in decisions.values()) == 8
    begun = lab.sensor()
    for operation in begun:
        assert lab.run(operation.id).state == "succeeded"
    assert begun and sum(app.slots for app in lab.fleet.apps()) <= 12


def test_the_most_important_apps_are_given_slots_first(lab):
    lab.budget(9)
    lab.declare("aaa", entry="aaa")
    lab.declare("zzz", entry="zzz")
    file = lab.source / "apps" / "zzz.yaml"
    file.write_text(file.read_text().replace("owner: team-a", "owner: team-a, tier: gold"))
    lab.start()
    for operation in lab.apply().operations:
        lab.run(operation.id)
    measured = Measured(lab)
    measured.lags = {"aaa": 3_000_000, "zzz": 3_000_000}
    decisions = lab.next_decisions()
    assert (decisions["zzz"].action, decisions["zzz"].slots) == ("up", 8)
    assert (decisions["aaa"].action, decisions["aaa"].cause) == ("hold", "budget-limited")


def test_a_scale_operation_that_finds_no_room_when_it_begins_is_not_begun(lab):
    lab.budget(5)
    lab.several("one", "two")
    first = lab.operate(OperationKind.SCALE, "one", slots=4)
    second = lab.operate(OperationKind.SCALE, "two", slots=2)  # asked for before the first has begun
    assert lab.run(first.id).state == "succeeded"
    over = lab.run(second.id)
    assert over.state == "cancelled" and "2 slots are more than the 1 that the fleet's budget of 5 leaves" in over.error
    assert lab.fleet.app("two").slots == 1 and lab.fleet.app("two").phase == "running"
    assert lab.run(lab.operate(OperationKind.SCALE, "one", slots=1).id).state == "succeeded"
    assert lab.run(lab.operate(OperationKind.SCALE, "two", slots=2).id).state == "succeeded"


def test_a_new_app_waits_for_room_in_the_budget(lab):
    lab.budget(5)
    lab.several("one")
    lab.run(lab.operate(OperationKind.SCALE, "one", slots=4).id)
    lab.declare("two", entry="two", min=2)
    [one, two] = lab.apply().plan.changes
    assert one.blocked is None and "budget of 5 leaves for app two" in two.blocked
    assert [app.name for app in lab.fleet.apps()] == ["one"]
    lab.run(lab.operate(OperationKind.SCALE, "one", slots=1).id)
    assert len(lab.apply().operations) == 1


def test_apps_that_want_more_than_the_budget_are_refused_as_definitions(lab):
    lab.budget(5)
    lab.declare("one", min=3)
    lab.declare("two", min=3)
    lab.start()
    with pytest.raises(InvalidDefinitionError, match="the apps want 6 slots at least, the fleet's budget is 5"):
        lab.apply()


# what is known of moves


def spec(run="{}"):
    text = APP % {"name": "one", "entry": "topology", "generation": 1, "min": 1, "more": f"run: {run}"}
    return AppDefinition.model_validate(as_tuples(yaml.safe_load(text))).spec


def test_bounds_take_what_was_measured_what_the_budget_allows_and_what_the_app_has_set():
    unknown = bounds_of(spec(), None, RestoreBudget(), None)
    assert (unknown.restore_bytes_per_second, unknown.max_warmups) == (Bounds(Scale()).restore_bytes_per_second, 2)
    measured = replace(chain(), restore_bytes_per_second=3e6)
    assert bounds_of(spec(), measured, RestoreBudget(), 7).restore_bytes_per_second == 3e6
    tuned = spec("{config: {max.warmup.replicas: 6}, slot: {cpu: 0.5}}")
    budget = RestoreBudget.model_validate({"bytesPerSecond": "6Mi"})
    found = bounds_of(tuned, measured, budget, 7)
    assert (found.max_warmups, found.slot_cpu, found.free_slots) == (6, 0.5, 7)
    assert found.restore_bytes_per_second == 2**20, "six that warm up at a time share the budget"
    one_by_one = bounds_of(tuned, measured, RestoreBudget(concurrent=1), None)
    assert (one_by_one.max_warmups, one_by_one.restore_bytes_per_second) == (1, 3e6)
