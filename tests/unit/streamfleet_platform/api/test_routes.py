"""Every route, by the client that everybody uses: what goes in comes out as the same views."""

import pytest

from streamfleet_platform import views
from streamfleet_platform.errors import ConfirmationError, ConflictError, NotFoundError, StaleError
from streamfleet_platform.model.operation import OperationKind, OperationState


def test_everything_that_can_be_looked_at(client, fleet):
    assert client.fleet() == fleet.fleet()
    assert client.apps() == fleet.apps()
    assert client.app("orders") == fleet.app("orders")
    assert client.provenance("orders") == fleet.provenance("orders")
    assert client.topology_svg("orders") == fleet.topology_svg("orders")
    assert client.phases("orders") == fleet.phases("orders", 50)
    assert client.observations("orders") == fleet.observations("orders", 200)
    assert client.logs("orders", 1, 2) == "a line\na line\n"
    assert client.events() == []
    assert client.decisions() == fleet.decisions()
    assert client.reset_preview("orders") == fleet.reset_preview("orders")
    assert client.findings() == []


@pytest.mark.parametrize(
    ("verb", "given", "params"),
    [
        ("scale", {"slots": 3, "reason": "load"}, {"slots": 3, "reason": "load", "from_slots": None}),
        ("probe", {}, {}),
        ("start", {}, {}),
        ("stop", {}, {}),
        ("upgrade", {"ref": "main"}, {"ref": "main", "accept_lost_state": False}),
        ("retire", {"confirm": "orders"}, {"confirm": "orders", "undo_window_seconds": None}),
        (
            "reset",
            {"confirm": "orders", "preview": "preview-2"},
            {"confirm": "orders", "preview": "preview-2", "input_topics": "earliest"},
        ),
    ],
)
def test_a_verb_begins_its_operation_with_what_was_said(client, fleet, verb, given, params):
    begun = getattr(client, verb)("orders", **given, intent_id=f"intent-{verb}")
    assert (begun.kind, begun.app, begun.actor) == (OperationKind(verb), "orders", "admin")
    assert begun.intent_id == f"intent-{verb}"
    assert begun.params == params
    assert client.operation(begun.id) == begun
    assert [each.id for each in client.operations("orders")] == [begun.id]


def test_apply_begins_what_the_plan_says(client, fleet):
    fleet.planned = (views.AppChange(app="orders", owner="payments", action="upgrade"),)
    assert client.plan().changes == fleet.planned
    applied = client.apply(apps=("orders",), accept_lost_state=("orders",))
    assert [each.kind for each in applied.operations] == [OperationKind.UPGRADE]


def test_an_operation_that_asks_can_be_approved_or_cancelled(client, fleet):
    asked = client.reset("orders", confirm="orders")
    fleet.ask(asked.id)
    assert client.approve(asked.id).state is OperationState.PLANNED
    assert client.cancel(asked.id).state is OperationState.CANCELLED
    with pytest.raises(ConflictError):
        client.approve(asked.id)


def test_an_operation_is_followed_to_its_end(client, fleet):
    begun = client.scale("orders", 3)
    seen = []
    for current in client.follow(begun.id, every=0.001):
        seen.append(current.state)
        fleet.settle()
    assert seen == [OperationState.PLANNED, OperationState.SUCCEEDED]
    assert client.wait(begun.id).state is OperationState.SUCCEEDED


def test_audits_and_their_reports(client):
    report = {
        "run_id": "run-1",
        "engine": "local",
        "started_at": "2026-01-01T00:00:00Z",
        "ended_at": "2026-01-01T00:01:00Z",
        "verdict": "clean",
        "report_html": "<p>clean</p>",
    }
    assert client.audit_spec("orders") == {"app": "orders"}
    assert client.record_audit("orders", report).verdict == "clean"
    assert [run.id for run in client.audits("orders")] == ["run-1"]
    assert client.audit_html("orders", "run-1") == "<p>clean</p>"
    with pytest.raises(NotFoundError):
        client.audit_html("clicks", "run-1")


def test_a_bootstrap_moves_with_the_newest_token_only(client):
    first = client.start_bootstrap("orders", "from-lake")
    second = client.start_bootstrap("orders", "from-lake")
    assert second.token == first.token + 1
    with pytest.raises(ConflictError):
        client.move_bootstrap("orders", first.id, first.token, "computed")
    assert client.move_bootstrap("orders", first.id, second.token, "computed", {"rows": 3}).state == "computed"
    assert [run.state for run in client.bootstraps("orders")] == ["computed"]


@pytest.mark.parametrize("said", [None, "", "clicks", "ORDERS", "orders "])
@pytest.mark.parametrize("verb", ["reset", "retire"])
def test_what_cannot_be_undone_wants_the_apps_name(client, fleet, verb, said):
    with pytest.raises(ConfirmationError):
        getattr(client, verb)("orders", confirm=said)
    assert fleet.log == []


def test_a_reset_decided_on_an_older_preview_is_refused(client, fleet):
    preview = client.reset_preview("orders")
    client.scale("orders", 5)
    fleet.settle()
    with pytest.raises(StaleError):
        client.reset("orders", confirm="orders", preview=preview.id)


def test_what_is_not_there_is_said(client):
    with pytest.raises(NotFoundError, match="there is no app nowhere"):
        client.app("nowhere")
    with pytest.raises(NotFoundError):
        client.operation("0123")
    with pytest.raises(NotFoundError):
        client.logs("orders", 7)
