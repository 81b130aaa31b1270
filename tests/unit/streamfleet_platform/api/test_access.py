"""Who may call what: every route the app serves, every kind of token, whose app it is; routes enumerated from the app itself."""

import itertools
import re

import pytest
from fastapi.routing import iter_route_contexts
from tests.unit.streamfleet_platform.api.conftest import TOKENS
from tests.unit.streamfleet_platform.api.fake_fleet import OWNERS

from streamfleet_platform.api.access import RULES, Action, Principal, Reach, Role
from streamfleet_platform.api.app import actions_of
from streamfleet_platform.api.gatekeeper import is_open
from streamfleet_platform.errors import ForbiddenError
from streamfleet_platform.model.operation import OperationKind

BODIES = {
    "scale": {"slots": 3},
    "bootstraps": {"name": "from-lake"},
    "audits": {
        "run_id": "r",
        "engine": "local",
        "started_at": "2026-01-01T00:00:00Z",
        "ended_at": "2026-01-01T00:00:00Z",
        "verdict": "clean",
    },
    "{run_id}": {"token": 1, "state": "computed"},
}
OPEN = {("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/"), ("HEAD", "/"), ("GET", "/console"), ("HEAD", "/console")}


def served(app):
    """Every method and path; a mounted directory counts with its root."""
    for route in iter_route_contexts(app.routes):
        for method in sorted(route.methods or {"GET", "HEAD"}):
            yield method, route.path, route


def call(client, method, path, app_name="orders", operation="0000"):
    verb = path.rpartition("/")[2]
    named = {
        "app": app_name,
        "operation_id": operation,
        "slot": "0",
        "run_id": f"{app_name}-from-lake",
        "store": "counts",
    }
    for name, value in named.items():
        path = path.replace(f"{{{name}}}", value)
    path = path.replace("{key:path}", "k")
    if method == "POST":
        body = dict(BODIES.get(verb, {}))
        if verb in ("reset", "retire"):
            body = {"confirm": app_name}
        return client.post(path, json=body)
    return client.request(method, path)


def test_every_route_but_health_and_the_consoles_files_refuses_without_a_token(app, http):
    closed = [(method, path) for method, path, _ in served(app) if (method, path) not in OPEN]
    assert len(closed) > 30
    for method, path in closed:
        response = call(http(None), method, path)
        assert response.status_code == 401, (method, path)
        assert response.headers["www-authenticate"].startswith("Bearer")
        assert response.headers["content-type"] == "application/problem+json"


def test_what_is_open_is_exactly_that(app):
    assert {(method, path) for method, path, _ in served(app) if is_open(method, path)} == OPEN


@pytest.mark.parametrize(
    "given",
    [
        "Bearer nonsense",
        "Bearer ",
        "Bearer",
        "bearer  two words",
        "Basic YWRtaW46YWRtaW4=",
        "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.",
        "Bearer " + "x" * 100_000,
        "Bearer sft_é".encode("latin-1"),
    ],
)
def test_a_token_that_is_none_is_refused(http, given):
    assert http(None).get("/v1/fleet", headers={"Authorization": given}).status_code == 401


def test_a_token_in_the_address_or_a_cookie_is_no_token(http, tokens):
    assert http(None).get("/v1/fleet", params={"token": tokens["admin"]}).status_code == 401
    assert http(None).get("/v1/fleet", headers={"Cookie": f"token={tokens['admin']}"}).status_code == 401


def test_two_tokens_at_once_are_none(http, tokens):
    both = [("Authorization", f"Bearer {tokens['viewer']}"), ("Authorization", f"Bearer {tokens['admin']}")]
    assert http(None).get("/v1/fleet", headers=both).status_code == 401


def test_unknown_paths_do_not_tell_whether_they_exist(http):
    assert http(None).get("/v1/nothing").status_code == 401
    assert http(None).get("/docs").status_code == 401
    assert http().get("/v1/nothing").status_code == 404


def test_every_route_is_asked_for_as_the_table_says(app, http, fleet):
    """The matrix. What is allowed may still fail for other reasons, but not by 401 or 403."""
    matrix = [(m, p, r) for m, p, r in served(app) if p.startswith("/v1/") and "stream" not in p]
    principals = {
        name: Principal(name, Role[role.upper()], None if teams == "all" else frozenset(teams))
        for name, (role, teams) in TOKENS.items()
    }
    seen = set()
    for (method, path, route), (name, principal), app_name in itertools.product(matrix, principals.items(), OWNERS):
        (action,) = actions_of(route)
        expected = may(principal, action, OWNERS[app_name] if "{app}" in path else None)
        response = call(http(name), method, path, app_name)
        assert (response.status_code != 403) == expected, (method, path, name, app_name, response.text)
        seen.add((action, expected))
        fleet.settle()
    refusable = {
        action for action, rule in RULES.items() if rule.role > Role.VIEWER or rule.reach is not Reach.EVERY_APP
    }
    assert {action for action, expected in seen if not expected} >= refusable - {Action.DEPLOY}


def may(principal, action, owner):
    """The table again, in the words of the documentation."""
    if principal.role is Role.ADMIN:
        return True
    looks = action in (Action.LOOK, Action.PLAN)
    if looks:
        return True
    if action is not Action.QUERY and principal.role is Role.VIEWER:
        return False
    if owner is None:
        return True
    if action is Action.RETIRE:
        return principal.teams is not None and owner in principal.teams
    return principal.teams is None or owner in principal.teams


def test_every_action_has_its_rule_and_every_kind_of_operation_its_action():
    assert set(RULES) == set(Action)
    assert {kind.value for kind in OperationKind} <= {action.value for action in Action}


@pytest.mark.parametrize("verb", ["cancel", "approve"])
def test_who_may_not_begin_an_operation_may_not_decide_about_it(http, client, fleet, verb):
    operation = client.reset("orders", confirm="orders")
    fleet.ask(operation.id)
    for name in ("viewer", "web-operator"):
        assert (
            call(http(name), "POST", f"/v1/operations/{{operation_id}}/{verb}", operation=operation.id).status_code
            == 403
        )
    assert (
        call(http("operator"), "POST", f"/v1/operations/{{operation_id}}/{verb}", operation=operation.id).status_code
        == 200
    )


def test_a_refused_call_leaves_no_trace(http, fleet):
    for name in ("viewer", "web-operator"):
        assert http(name).post("/v1/apps/orders/scale", json={"slots": 3}).status_code == 403
    assert fleet.log == []
    assert fleet.operations_by_id == {}


class TestApplying:
    """Who is limited to teams applies only what is theirs, before and after."""

    @pytest.fixture(autouse=True)
    def planned(self, fleet):
        from streamfleet_platform import views

        fleet.planned = (
            views.AppChange(app="orders", owner="payments", action="upgrade"),
            views.AppChange(app="clicks", owner="web", action="none"),
            views.AppChange(app="refunds", owner="payments", action="create"),
        )
        return views

    def test_their_own_apps_and_new_ones(self, http):
        response = http("operator").post("/v1/apply", json={})
        assert response.status_code == 202
        assert [each["app"] for each in response.json()["operations"]] == ["orders", "refunds"]

    def test_not_those_of_others(self, http, fleet):
        assert http("web-operator").post("/v1/apply", json={}).status_code == 403
        assert fleet.log == []

    def test_not_an_app_that_is_taken_over_by_declaring_another_owner(self, http, fleet, planned):
        fleet.planned = (planned.AppChange(app="orders", owner="web", action="update"),)
        assert http("web-operator").post("/v1/apply", json={}).status_code == 403
        assert http("operator").post("/v1/apply", json={}).status_code == 403
        assert http("dagster").post("/v1/apply", json={}).status_code == 202

    def test_not_an_app_that_nobody_owns(self, http, fleet, planned):
        fleet.planned = (planned.AppChange(app="orders", owner=None, action="update"),)
        assert http("operator").post("/v1/apply", json={}).status_code == 403

    def test_only_what_is_named_matters(self, http, fleet, planned):
        fleet.planned = (*fleet.planned, planned.AppChange(app="clicks", owner="web", action="update"))
        assert http("operator").post("/v1/apply", json={}).status_code == 403
        assert http("operator").post("/v1/apply", json={"apps": ["orders"]}).status_code == 202


def test_what_openapi_describes_is_what_is_served(app, http):
    described = http().get("/v1/openapi.json").json()["paths"]
    paths = {(m, re.sub(r":path\}", "}", p)) for m, p, _ in served(app) if p.startswith("/v1/") and "openapi" not in p}
    assert {(method.upper(), path) for path, methods in described.items() for method in methods} == paths
    for path, methods in described.items():
        if "post" in methods:
            assert "requestBody" in methods["post"], path


def test_a_route_that_does_not_say_who_may_call_it_is_not_served(fleet, token_file, monkeypatch):
    from fastapi import APIRouter

    from streamfleet_platform.api import create_app, jobs

    forgotten = APIRouter(prefix="/v1")
    forgotten.get("/forgotten")(lambda: "everybody")
    monkeypatch.setattr(jobs, "routes", forgotten)
    with pytest.raises(AssertionError, match="/v1/forgotten does not say who may call it"):
        create_app(fleet, token_file)


def test_an_admin_reaches_every_team_and_a_named_team_is_more_than_all():
    Principal("a", Role.ADMIN, frozenset()).check(Action.RETIRE, "payments")
    Principal("b", Role.OPERATOR, frozenset({"payments"})).check(Action.RETIRE, "payments")
    Principal("c", Role.OPERATOR, None).check(Action.RESET, "payments")
    with pytest.raises(ForbiddenError, match="c may not retire apps of payments"):
        Principal("c", Role.OPERATOR, None).check(Action.RETIRE, "payments")
