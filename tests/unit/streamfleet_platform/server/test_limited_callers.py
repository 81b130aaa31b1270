"""What callers may change who act for some teams, and whose word counts: held by what is written, not by what was shown before."""

import pytest
from tests.unit.streamfleet_platform.simulated_world import Lab

from streamfleet_platform import views
from streamfleet_platform.api.access import Principal, Role
from streamfleet_platform.api.operating import OwnApps
from streamfleet_platform.errors import ConflictError, ForbiddenError, InvalidDefinitionError, NotFoundError
from streamfleet_platform.model.operation import OperationKind
from streamfleet_platform.reconcile.fleet_state import definition_of
from streamfleet_platform.registry import apps

TEAM_B = OwnApps(Principal("bob", Role.OPERATOR, frozenset({"team-b"})))


@pytest.fixture
def lab(tmp_path):
    """App `one` of team-a and `two` of team-b."""
    lab = Lab(tmp_path)
    lab.names = {"second": "two"}
    lab.declare()
    own(lab, "two", "team-b", entry="second")
    lab.start()
    for operation in lab.apply().operations:
        lab.run(operation.id)
    yield lab
    lab.server.close()


def own(lab, name, team, **more):
    lab.declare(name, **more)
    path = lab.source / "apps" / f"{name}.yaml"
    path.write_text(path.read_text().replace("owner: team-a", f"owner: {team}"))


def edit_fleet(lab, former, new):
    path = lab.source / "fleet.yaml"
    assert former in path.read_text()
    path.write_text(path.read_text().replace(former, new))


def apply(lab, *names, limits=TEAM_B, intent="b1"):
    return lab.fleet.apply(views.ApplyRequest(apps=names), actor="bob", intent_id=intent, limits=limits)


def state(lab):
    with lab.world.database.read() as session:
        return apps.fleet_state(session)


def more(text):
    return f"health: {{noProgress: {text}}}"


def budget(lab):
    return definition_of(state(lab)).spec.budgets.restore.bytes_per_second


def test_what_is_not_theirs_is_refused_as_a_whole(lab):
    before = lab.fleet.app("two").revision
    lab.declare(more=more("9m"))
    own(lab, "two", "team-b", entry="second", more=more("9m"))
    with pytest.raises(ForbiddenError, match="bob may not apply apps of team-a"):
        apply(lab)
    assert lab.fleet.app("two").revision == before and lab.fleet.operations(None, 50)[0].kind == "deploy"
    [operation] = apply(lab, "two").operations
    assert operation.app == "two"


def test_definitions_that_change_after_they_were_looked_at_are_judged_as_they_are_applied(lab):
    """The plan that the caller has seen was all theirs."""
    own(lab, "two", "team-b", entry="second", more=more("9m"))
    shown = lab.fleet.plan(views.SourceRequest())
    assert [change.app for change in shown.changes if change.action != "none"] == ["two"]
    lab.declare(more=more("9m"))
    with pytest.raises(ForbiddenError):
        apply(lab)


@pytest.mark.parametrize(("name", "declared"), [("one", "team-b"), ("two", "team-a")])
def test_an_app_is_neither_taken_nor_given_away_by_its_declared_owner(lab, name, declared):
    own(lab, name, declared, entry="second" if name == "two" else "topology", more=more("9m"))
    with pytest.raises(ForbiddenError):
        apply(lab, name)
    assert lab.fleet.owner_of(name) == {"one": "team-a", "two": "team-b"}[name]


def test_settings_of_the_whole_fleet_stay_until_somebody_applies_who_may_change_them(lab):
    before = state(lab)
    edit_fleet(lab, "  clusters:", "  budgets: {restore: {bytesPerSecond: 7Mi}}\n  clusters:")
    own(lab, "two", "team-b", entry="second", more=more("9m"))
    lab.run(apply(lab, "two").operations[0].id)
    assert (state(lab).definition, state(lab).revision) == (before.definition, before.revision)
    own(lab, "two", "team-b", entry="second", more=more("8m"))
    lab.run(lab.operate(OperationKind.UPGRADE, app="two").id)
    assert state(lab).definition == before.definition, "an upgrade is of one app"
    apply(lab, limits=None, intent="admin")
    assert budget(lab) == 7 * 2**20


def test_a_cluster_that_the_fleet_does_not_have_cannot_be_brought_along(lab):
    edit_fleet(lab, "broker:9092", "elsewhere:9092")
    own(lab, "two", "team-b", entry="second", more=more("9m"))
    with pytest.raises(ForbiddenError, match="wants cluster dev as the fleet does not have it"):
        apply(lab, "two")
    with pytest.raises(ForbiddenError):
        lab.operate(OperationKind.UPGRADE, app="two")
    assert apply(lab, limits=None, intent="admin").operations


def test_what_an_app_reads_is_its_teams_to_say(lab):
    recorded = [["one", "two", "dropped"], ["two", "one", "kept"]]
    lab.world.database.write(lambda session: setattr(apps.fleet_state(session), "flows", recorded))
    own(lab, "two", "team-b", entry="second", more=more("9m"))
    apply(lab, "two")
    assert state(lab).flows == [["two", "one", "kept"]]


def test_broken_definitions_of_one_team_are_not_told_of_the_fleet(lab):
    own(lab, "two", "team-b", entry="second", more="nonsense: 1")
    with pytest.raises(InvalidDefinitionError):
        apply(lab, "two")
    assert lab.fleet.fleet().problems == ()


def test_resets_that_others_wait_for_are_not_withdrawn(lab):
    lab.declare(generation=2)
    lab.apply()
    lab.declare(generation=1)
    own(lab, "two", "team-b", entry="second", more=more("9m"))
    apply(lab, "two")
    apply(lab, intent="b2")
    assert [each.app for each in lab.fleet.decisions().resets] == ["one"]


def test_one_approval_is_that_of_another_person(lab):
    lab.declare(more="protect: {reset: {approvals: 1}}")
    lab.run(lab.apply(apps=("one",)).operations[0].id)
    asked = lab.operate(OperationKind.RESET, confirm="one")  # by ann
    assert asked.state == "asking"
    with pytest.raises(ConflictError, match="who asked for it cannot approve it too"):
        lab.fleet.approve(asked.id, actor="ann")
    assert lab.fleet.approve(asked.id, actor="eve").state == "planned"


def test_two_approvals_are_of_two_other_people(lab):
    lab.declare(more="protect: {reset: {approvals: 2}}")
    lab.run(lab.apply(apps=("one",)).operations[0].id)
    asked = lab.operate(OperationKind.RESET, confirm="one")
    for _ in range(2):
        assert lab.fleet.approve(asked.id, actor="eve").state == "asking"
    with pytest.raises(ConflictError):
        lab.fleet.approve(asked.id, actor="ann")
    assert lab.fleet.approve(asked.id, actor="max").state == "planned"


def test_a_new_app_of_another_team_is_refused_and_leaves_nothing(lab):
    own(lab, "three", "team-c", entry="second")
    with pytest.raises(ForbiddenError):
        apply(lab)
    with pytest.raises(NotFoundError):
        lab.fleet.app("three")
