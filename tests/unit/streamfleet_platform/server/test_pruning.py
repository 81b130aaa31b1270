"""What is kept of earlier revisions, in the registry and on disk."""

import pytest
from sqlalchemy import select
from tests.unit.streamfleet_platform.simulated_world import Lab

from streamfleet_platform import views
from streamfleet_platform.registry.tables import Revision
from streamfleet_platform.server.pruning import KEPT_REVISIONS


@pytest.fixture
def lab(tmp_path):
    lab = Lab(tmp_path).deployed()
    yield lab
    lab.server.close()


def exported(lab):
    return {path.name for path in lab.settings.code.iterdir()}


def revisions(lab):
    with lab.server.database.read() as session:
        return list(session.scalars(select(Revision).order_by(Revision.created_at)))


def edit(lab, number):
    (lab.source / "code.py").write_text(f"number = {number}\n")


def upgraded(lab, number):
    edit(lab, number)
    [operation] = lab.apply().operations
    assert lab.run(operation.id).state == "succeeded"


def test_only_the_last_few_revisions_are_kept_with_their_code(lab):
    for number in range(2 * KEPT_REVISIONS):
        upgraded(lab, number)
    kept = revisions(lab)
    assert len(kept) == KEPT_REVISIONS and exported(lab) == {row.code_id for row in kept}
    assert lab.world.revisions.get("one", kept[-1].id).code_id in exported(lab)
    assert [spec.code.is_dir() for spec in lab.runtime.specs.values()] == [True]


def test_a_plan_leaves_no_code_behind(lab):
    before = exported(lab)
    for number in range(3):
        edit(lab, number)
        assert lab.fleet.plan(views.SourceRequest()).changes[0].action == "upgrade"
        assert exported(lab) == before


def overtaken(lab):
    """As if many revisions had been applied since."""
    [*_, row] = revisions(lab)

    def change(session):
        for number in range(2 * KEPT_REVISIONS):
            session.add(Revision(**{**row.model_dump(), "id": f"later-{number}", "created_at": lab.clock()}))

    lab.server.database.write(change)
    lab.apply()  # nothing new
    return {row.id for row in revisions(lab) if not row.id.startswith("later-")}


def test_what_an_operation_goes_to_and_comes_from_is_kept_however_old(lab):
    first = lab.fleet.app("one").revision
    edit(lab, 1)
    lab.apply()
    target = revisions(lab)[-1].id
    assert overtaken(lab) == {first, target}


def test_what_a_reset_would_bring_is_kept_until_nobody_wants_it(lab):
    first = lab.fleet.app("one").revision
    lab.declare(generation=2)
    lab.apply()  # waits for a person
    waiting = revisions(lab)[-1].id
    assert overtaken(lab) == {first, waiting}
    lab.declare()
    lab.apply()
    assert {row.id for row in revisions(lab) if not row.id.startswith("later-")} == {first}
