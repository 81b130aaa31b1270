"""The server over a simulated world: what callers may rely on."""

from dataclasses import replace

import pytest
from sqlalchemy import text
from tests.unit.streamfleet_platform.simulated_world import Lab

from streamfleet_platform import views
from streamfleet_platform.errors import (
    ConfirmationError,
    ConflictError,
    InvalidDefinitionError,
    NotFoundError,
    PermanentError,
    StaleError,
    TransientError,
)
from streamfleet_platform.model.operation import OperationKind
from streamfleet_platform.registry import apps
from streamfleet_platform.registry.lease import Leadership, NotLeaderError
from streamfleet_platform.scaling.measures import Measures


@pytest.fixture
def lab(tmp_path):
    lab = Lab(tmp_path)
    yield lab
    lab.server.close()


def test_an_applied_app_runs_and_says_so(lab):
    lab.deployed(min=2)
    app = lab.fleet.app("one")
    assert (app.phase, app.slots_ready, app.drift) == ("running", 2, 0)
    assert [t.name for t in app.topics if t.role == "changelog"] == ["one-activity-by-minute-changelog"]
    assert lab.fleet.phases("one", 9)[0].phase == "running"


def test_the_same_intent_gives_the_first_result(lab):
    lab.deployed()
    first = lab.operate(OperationKind.SCALE, intent_id="i1", slots=2)
    lab.run(first.id)
    again = lab.operate(OperationKind.SCALE, intent_id="i1", slots=2)
    assert again.id == first.id and len(lab.fleet.operations("one", 10)) == 2
    request = views.ApplyRequest()
    one = lab.fleet.apply(request, actor="ann", intent_id="a1")
    assert lab.fleet.apply(request, actor="bob", intent_id="a1") == one


def test_one_operation_per_app_at_a_time(lab):
    lab.deployed()
    lab.operate(OperationKind.SCALE, slots=2)
    with pytest.raises(ConflictError, match="scale .* is planned"):
        lab.operate(OperationKind.RESET, confirm="one")


def test_a_second_server_does_not_act_and_takes_over_when_the_lease_is_over(lab):
    lab.deployed()
    leader = lab.server
    second = lab.start(holder="second")
    assert not second.fleet.fleet().is_leader and leader.fleet.fleet().is_leader
    calls = len(lab.runtime.calls)
    for _ in range(3):
        second.loop.step()
    assert len(lab.runtime.calls) == calls
    with pytest.raises(TransientError, match="does not lead"):
        lab.operate(OperationKind.STOP)
    lab.clock.advance(20)
    second.loop.step()
    assert second.fleet.fleet().is_leader
    leader.loop.step()
    assert not leader.loop.is_leader
    leader.database.close()


def test_a_stale_token_is_refused_by_registry_and_runtime(lab):
    lab.deployed()
    stale = Leadership("paused", 1)
    lab.clock.advance(20)
    lab.start(holder="next")
    with pytest.raises(NotLeaderError, match="token is 1, the lease is 2"):
        lab.world.leases.write(stale, lambda _: None)
    lab.run(lab.operate(OperationKind.STOP).id)
    with pytest.raises(StaleError):
        lab.runtime.stop("one", 0, token=1)


def test_a_dead_worker_is_started_again(lab):
    lab.deployed()
    lab.runtime.lose("one", 0)
    lab.step()
    lab.step()
    assert lab.fleet.app("one").slots_ready == 1
    assert any(event.kind == "drift" for event in lab.fleet.events("one", 0, 50))


def test_workers_that_the_registry_does_not_know_are_taken_over(lab):
    lab.deployed()
    pids = lab.pids()
    lab.server.database.write(lambda session: session.execute(text("DELETE FROM worker")))
    lab.step()
    lab.step()
    assert lab.pids() == pids and lab.fleet.app("one").drift == 0


def test_invalid_definitions_change_nothing_and_are_told(lab):
    lab.deployed()
    lab.declare(more="nonsense: 1")
    with pytest.raises(InvalidDefinitionError, match="unknown field 'nonsense'"):
        lab.apply()
    lab.step()
    fleet = lab.fleet.fleet()
    assert fleet.problems and lab.fleet.app("one").phase == "running"


def test_only_apps_whose_code_changed_are_compiled(lab):
    lab.deployed()
    lab.compiled.clear()
    lab.declare(more="health: {noProgress: 9m}")
    plan = lab.fleet.plan(views.SourceRequest())
    assert [(c.action, c.verdict) for c in plan.changes] == [("update", "UNCHANGED")] and lab.compiled == []
    for more in ("run: {config: {dsl.store.suppliers.class: in_memory}}", "topology: {requireNames: false}"):
        lab.compiled.clear()
        lab.declare(more=more)
        lab.fleet.plan(views.SourceRequest())
        assert lab.compiled == ["code:topology"], more


def test_code_of_another_app_restarts_nobody(lab):
    lab.names = {"other": "two"}
    lab.declare("two", entry="other")
    declared = (lab.source / "apps" / "two.yaml").read_text().replace("code:other", "another:other")
    (lab.source / "apps" / "two.yaml").write_text(declared)
    (lab.source / "another.py").write_text("from shared import x\n")
    (lab.source / "shared.py").write_text("x = 1\n")
    lab.declare()
    lab.start()
    for operation in lab.apply().operations:
        assert lab.run(operation.id).state == "succeeded"
    before = lab.pids()
    (lab.source / "new.py").write_text("nobody imports this\n")
    assert {change.action for change in lab.fleet.plan(views.SourceRequest()).changes} == {"none"}
    lab.compiled.clear()
    (lab.source / "shared.py").write_text("x = 2\n")
    [operation] = lab.apply().operations
    assert (operation.app, lab.compiled) == ("two", ["another:other"])
    assert lab.run(operation.id).state == "succeeded" and lab.pids() == before
    assert {path.name for path in lab.runtime.specs["two", 0].code.iterdir()} == {"another.py", "shared.py"}


def test_settings_that_no_worker_sees_restart_nobody(lab):
    lab.deployed()
    pids = lab.pids()
    lab.declare(more="health: {noProgress: 9m}")
    [operation] = lab.apply().operations
    assert lab.run(operation.id).state == "succeeded" and lab.pids() == pids
    lab.step()
    assert lab.fleet.app("one").drift == 0


def test_a_gate_that_fails_brings_the_last_good_revision_back(lab):
    lab.deployed(min=2)
    good = lab.fleet.app("one").revision
    lab.declare(min=2, entry="rolling")
    plan = lab.fleet.plan(views.SourceRequest())
    assert plan.changes[0].verdict == "ROLLING"
    lab.observer.sick.add(plan.revision)
    operation = lab.operate(OperationKind.UPGRADE)
    for _ in range(10):
        lab.step()
    lab.clock.advance(70)
    over = lab.run(operation.id)
    lab.step()
    assert over.state == "rolled_back" and "not well within" in over.error
    assert lab.fleet.app("one").revision == good
    assert {w.revision for w in lab.runtime.list("one")} == {good}


def test_a_change_that_loses_state_is_blocked_until_it_is_accepted(lab):
    lab.deployed()
    lab.declare(entry="lossy")
    change = lab.fleet.plan(views.SourceRequest()).changes[0]
    assert change.verdict == "INCOMPATIBLE" and "activity-by-minute" in change.blocked
    with pytest.raises(ConflictError, match="would be lost"):
        lab.operate(OperationKind.UPGRADE)
    done = lab.run(lab.operate(OperationKind.UPGRADE, accept_lost_state=True).id)
    assert done.state == "succeeded" and done.result["deleted_topics"]


def test_an_upgrade_that_was_refused_can_be_asked_for_again_with_its_key(lab):
    lab.deployed()
    before = len(lab.fleet.events("one", 0, 100))
    with pytest.raises(ConflictError, match="nothing is to be upgraded"):
        lab.operate(OperationKind.UPGRADE, intent_id="key")
    lab.declare(entry="lossy")
    with pytest.raises(ConflictError, match="would be lost"):
        lab.operate(OperationKind.UPGRADE, intent_id="key")
    assert len(lab.fleet.events("one", 0, 100)) == before, "nothing was written"
    begun = lab.operate(OperationKind.UPGRADE, intent_id="key", accept_lost_state=True)
    assert begun.intent_id == "key" and lab.operate(OperationKind.UPGRADE, intent_id="key").id == begun.id
    assert lab.run(begun.id).state == "succeeded"


def test_reset_wants_the_name_and_a_preview_that_still_fits(lab):
    lab.deployed()
    with pytest.raises(ConfirmationError):
        lab.operate(OperationKind.RESET, confirm="two")
    preview = lab.fleet.reset_preview("one")
    assert preview.offsets == {"one-in": 10} and preview.bytes is None
    assert any(line.startswith("local state of 1 slots, of a size that is not known,") for line in preview.lines)
    lab.observer.store_bytes = {"activity-by-minute": 3 * 2**20}
    lab.step()
    known = lab.fleet.reset_preview("one")
    assert (known.bytes, known.id) == (3 * 2**20, preview.id), (
        "how much it is changes all the time, and asks nobody again"
    )
    assert any(line.startswith("local state of 1 slots (3 MiB): deleted") for line in known.lines)
    lab.run(lab.operate(OperationKind.SCALE, slots=2).id)
    with pytest.raises(StaleError):
        lab.operate(OperationKind.RESET, confirm="one", preview=preview.id)


def test_reset_deletes_recorded_topics_only_and_never_one_of_another_id(lab):
    lab.deployed()
    lab.cluster.add("one-foreign-changelog")
    lab.cluster.add("one-by-country-repartition")  # made anew by somebody else: another id
    failed = lab.run(lab.operate(OperationKind.RESET, confirm="one").id)
    assert lab.cluster.deleted == ["one-activity-by-minute-changelog"]
    assert failed.state == "failed" and "one-by-country-repartition" in failed.error
    lab.step()
    assert lab.fleet.app("one").phase == "fenced" and lab.pids() == {}, "nothing starts it half reset"
    del lab.cluster.there["one-by-country-repartition"]
    assert lab.run(lab.operate(OperationKind.RESET, confirm="one").id).state == "succeeded"
    lab.step()
    assert lab.fleet.app("one").phase == "running" and "one-foreign-changelog" in lab.cluster.there


def test_a_raised_generation_waits_for_a_person_unless_the_definition_allows_it(lab):
    lab.deployed()
    lab.declare(generation=2)
    assert lab.apply().operations == ()
    [decision] = lab.fleet.decisions().resets
    assert (decision.to_generation, decision.allowed) == (2, False)
    asked = lab.operate(OperationKind.RESET, intent_id=decision.intent_id, confirm="one", preview=decision.preview.id)
    assert asked.state == "asking"
    lab.fleet.approve(asked.id, actor="eve")
    assert lab.run(asked.id).state == "succeeded"
    assert lab.fleet.app("one").generation == 2 and lab.fleet.decisions().resets == ()
    with lab.world.database.read() as session:
        assert {row.generation for row in apps.topics_of(session, "one")} == {2}


def test_sensors_that_ask_all_the_time_do_not_ask_the_cluster_all_the_time(lab):
    lab.deployed()
    lab.declare(generation=2)
    lab.apply()
    committed, asked = lab.cluster.committed, []
    lab.cluster.committed = lambda group, topics: asked.append(group) or committed(group, topics)
    told = [lab.fleet.decisions().resets[0].preview for _ in range(5)]
    assert asked == ["one"] and told[0].offsets == {"one-in": 10} and told.count(told[0]) == 5
    lab.cluster.put("one-in", 5)
    assert (
        lab.fleet.reset_preview("one").offsets == {"one-in": 15} and len(asked) == 2
    )  # a person is told what holds now
    assert lab.fleet.decisions().resets[0].preview.offsets == {"one-in": 15} and len(asked) == 2
    lab.clock.advance(61)
    lab.fleet.decisions()
    assert len(asked) == 3


def test_a_generation_that_git_takes_back_withdraws_its_reset(lab):
    lab.deployed()
    lab.declare(generation=2)
    lab.apply()
    [decision] = lab.fleet.decisions().resets
    asked = lab.operate(OperationKind.RESET, intent_id=decision.intent_id, confirm="one")
    lab.apply()  # the same once more: nothing is withdrawn
    assert lab.fleet.operation(asked.id).state == "asking"
    lab.declare(generation=1)
    lab.apply()
    assert lab.fleet.decisions().resets == () and lab.fleet.operation(asked.id).state == "cancelled"
    lab.declare(generation=2)
    lab.apply()
    again = lab.operate(OperationKind.RESET, intent_id=decision.intent_id, confirm="one")
    assert again.id != asked.id and again.state == "asking"


def test_a_reset_is_protected_by_the_definition_that_holds_now(lab):
    lab.deployed()
    lab.declare(more="protect: {reset: {approvals: 1}}")
    lab.run(lab.apply().operations[0].id)
    assert lab.operate(OperationKind.RESET, confirm="one").state == "asking"


def test_a_plan_says_whose_apps_it_changes_and_what_acceptance_helps_against(lab):
    lab.deployed()
    lab.declare(entry="lossy")
    change = lab.fleet.plan(views.SourceRequest()).changes[0]
    assert change.owner == "team-a" and change.can_accept
    path = lab.source / "apps" / "one.yaml"
    path.write_text(path.read_text().replace("applicationId: one", "applicationId: other"))
    change = lab.fleet.plan(views.SourceRequest()).changes[0]
    assert change.verdict == "INCOMPATIBLE" and not change.can_accept
    [refused] = lab.apply(accept_lost_state=("one",)).plan.changes
    assert "names its state" in refused.blocked and lab.fleet.app("one").application_id == "one"


def test_what_goes_wrong_again_and_again_is_told_once_and_keeps_no_other_slot_from_its_turn(lab):
    lab.deployed(min=2)
    start = lab.runtime.start

    def failing(spec, *, token):
        if spec.slot == 0:
            raise PermanentError("secret registry is not there", hint="set it for the server")
        return start(spec, token=token)

    lab.runtime.start = failing
    lab.runtime.lose("one", 0)
    lab.runtime.lose("one", 1)
    for _ in range(5):
        lab.step()
    told = [event for event in lab.fleet.events("one", 0, 200) if event.kind == "trouble"]
    assert len(told) == 1 and "secret registry" in told[0].message
    app = lab.fleet.app("one")
    assert app.slots_ready == 1, "the other slot was started"
    assert app.phase == "starting" and "secret registry is not there" in app.reason
    lab.runtime.start = start
    lab.step()
    lab.step()
    assert lab.fleet.app("one").phase == "running"


def test_a_pass_that_takes_long_keeps_its_lease(lab):
    lab.deployed()
    loop, observe = lab.server.loop, lab.observer.observe

    def slow(apps):
        for _ in range(3):
            lab.clock.advance(10)
            loop.keep_lease()
        return observe(apps)

    lab.observer.observe = slow
    passes = loop.passes
    lab.step()
    assert loop.is_leader and loop.passes == passes + 1
    with lab.world.database.read() as session:
        assert session.execute(text("SELECT token FROM lease")).scalar() == 1


def test_retire_leaves_nothing_and_can_be_undone_within_its_window(lab):
    lab.deployed()
    operation = lab.operate(OperationKind.RETIRE, confirm="one", undo_window_seconds=3600)
    for _ in range(6):
        lab.step()
    lab.fleet.cancel(operation.id, actor="ann")
    assert lab.run(operation.id).state == "rolled_back"
    lab.step()
    assert lab.fleet.app("one").phase == "running"
    assert lab.run(lab.operate(OperationKind.RETIRE, confirm="one", undo_window_seconds=0).id).state == "succeeded"
    with pytest.raises(NotFoundError):
        lab.fleet.app("one")
    assert lab.runtime.list() == [] and sorted(lab.cluster.there) == ["one-in", "one-out"]
    assert not list(lab.settings.code.iterdir())


def test_a_warm_up_is_nobodys_to_promote_while_an_operation_does_so(lab):
    lab.deployed()
    decided = {
        "app": "one",
        "intent_id": "p1",
        "at": "2026-01-01T00:00:00+00:00",
        "tasks": ["0_0@1"],
        "reason": "ready",
    }
    lab.server.database.write(lambda session: setattr(apps.get_app(session, "one"), "observed", {"probe": decided}))
    assert [each.intent_id for each in lab.fleet.decisions().probing] == ["p1"]
    lab.operate(OperationKind.SCALE, slots=2)
    assert lab.fleet.decisions().probing == ()


def test_a_scale_that_was_decided_at_another_number_of_slots_is_refused(lab):
    lab.deployed()
    lab.run(lab.operate(OperationKind.SCALE, slots=2, from_slots=1).id)
    with pytest.raises(StaleError, match="has 2 slots by now, and had 1"):
        lab.operate(OperationKind.SCALE, slots=3, from_slots=1)
    assert lab.fleet.app("one").slots == 2


def test_a_plan_says_what_it_costs_and_what_of_that_nobody_measured(lab):
    lab.deployed(min=2)
    lab.declare(min=2, more="health: {noProgress: 9m}")
    assert lab.fleet.plan(views.SourceRequest()).changes[0].cost == ()  # no worker sees that
    lab.declare(min=2, more="run: {config: {commit.interval.ms: 200}}")
    [settings] = lab.fleet.plan(views.SourceRequest()).changes
    assert settings.verdict == "UNCHANGED" and any(line.startswith("longest pause of a task") for line in settings.cost)
    assert not any(
        "a worker restarts" in line for line in settings.cost
    )  # its deployment has shown how long that takes
    lab.declare(min=2, generation=2)
    [reset] = lab.fleet.plan(views.SourceRequest()).changes
    assert "state built anew from the inputs: 0 B" in reset.cost
    assert "not measured, assumed: the inputs hold nothing" in reset.cost


def test_how_fast_an_app_restored_is_remembered_while_nothing_restores(lab):
    lab.deployed()
    one, speeds = lab.observer._one, iter([8e6, None])

    def measured(app, now):
        speed = next(speeds)
        measures = None if speed is None else Measures(now, {}, {}, {0: frozenset()}, restore_bytes_per_second=speed)
        return replace(one(app, now), measures=measures)

    lab.observer._one = measured
    for _ in range(2):
        lab.step()
        with lab.server.database.read() as session:
            assert apps.get_app(session, "one").observed["restore_bytes_per_second"] == 8e6


def test_a_resized_input_is_told_by_every_plan_and_only_a_reset_helps(lab):
    lab.deployed()
    lab.cluster.there["one-in"] = replace(lab.cluster.there["one-in"], partitions=8)
    [change] = lab.fleet.plan(views.SourceRequest()).changes
    assert (change.action, change.verdict, change.can_accept) == ("none", "INCOMPATIBLE", False)
    assert "one-in: it had 4 partitions, has 8" in change.changes[0] and "reset the app" in change.blocked
    lab.declare(entry="rolling")
    result = lab.apply(accept_lost_state=("one",))
    assert result.operations == () and "one-in was resized" in result.plan.changes[0].blocked
    assert lab.run(lab.operate(OperationKind.RESET, confirm="one").id).state == "succeeded"
    assert [each.blocked for each in lab.fleet.plan(views.SourceRequest()).changes] == [None]
    [operation] = lab.apply().operations
    assert lab.run(operation.id).state == "succeeded"


def test_a_raised_generation_takes_a_resized_input_as_it_is(lab):
    lab.deployed()
    lab.cluster.there["one-in"] = replace(lab.cluster.there["one-in"], partitions=8)
    lab.declare(generation=2)
    [change] = lab.fleet.plan(views.SourceRequest()).changes
    assert (change.action, change.verdict, change.blocked) == ("reset", "INCOMPATIBLE", None)


def test_a_plan_without_its_cluster_says_what_it_does_not_know(lab):
    lab.deployed()

    def silent(_names):
        raise TransientError("the cluster does not answer")

    lab.cluster.topics = silent
    plan = lab.fleet.plan(views.SourceRequest())
    assert [change.action for change in plan.changes] == ["none"]
    assert plan.warnings == ("whether inputs on cluster dev were resized is not known: the cluster does not answer",)


def test_the_event_log_cannot_be_changed(lab):
    lab.deployed()
    for statement in ("UPDATE event SET actor = 'x'", "DELETE FROM event"):
        with pytest.raises(Exception, match="append-only"):
            lab.server.database.write(lambda session, what=statement: session.execute(text(what)))
