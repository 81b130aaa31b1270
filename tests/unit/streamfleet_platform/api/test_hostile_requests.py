"""What bad or hostile requests get: a refusal that says what is wrong, quickly, and nothing has happened."""

import json
import threading
import time

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamfleet_platform import views
from streamfleet_platform.api.commands import MAX_BODY_BYTES, RememberedAnswers, parsed
from streamfleet_platform.errors import FleetError, InvalidRequestError

SCALE = "/v1/apps/orders/scale"
JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (SCALE, {"slots": 3, "owner": "web"}),
        (SCALE, {"slots": 3, "status": "running"}),
        (SCALE, {"slots": "3"}),
        (SCALE, {"slots": 3.0}),
        (SCALE, {"slots": True}),
        (SCALE, {"slots": 0}),
        (SCALE, {"slots": 10**6}),
        (SCALE, {}),
        (SCALE, []),
        ("/v1/apps/orders/probe", {"generation": 2}),
        ("/v1/apps/orders/reset", {"confirm": "orders", "principal": "admin"}),
        ("/v1/apply", {"ref": "../../etc/passwd"}),
        ("/v1/apply", {"ref": "--upload-pack=x"}),
        ("/v1/plans", {"source": "/etc"}),
    ],
)
def test_a_body_with_unknown_or_wrong_fields_is_refused(http, fleet, path, body):
    response = http().post(path, json=body)
    assert response.status_code == 422, response.text
    assert response.headers["content-type"] == "application/problem+json"
    assert views.ProblemView.model_validate_json(response.content).status == 422
    assert fleet.log == []


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"nonsense",
        b'{"slots": NaN}',
        b'{"slots": Infinity}',
        b'{"slots": 3, "slots": 4}',
        b'{"slots": ' + b"9" * 5000 + b"}",
        b'{"slots": 1e999}',
        b"[" * 100_000,
        b'{"slots": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
        b'{"slots": 3}\x00',
        b'\xff\xfe{"slots": 3}',
        '{"slots": 3, "reason": "\ud800"}'.encode("utf-8", "surrogatepass"),
    ],
)
def test_json_that_is_none_is_refused(http, fleet, raw):
    began = time.monotonic()
    assert http().post(SCALE, content=raw, headers=JSON).status_code == 422
    assert time.monotonic() - began < 1
    assert fleet.log == []


@pytest.mark.parametrize(
    "kind", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/json5"]
)
def test_another_content_type_is_refused(http, fleet, kind):
    headers = {} if kind is None else {"Content-Type": kind}
    assert http().post(SCALE, content=b'{"slots": 3}', headers=headers).status_code == 415
    assert fleet.log == []


def test_a_compressed_body_is_refused(http):
    assert http().post(SCALE, content=b"x", headers={**JSON, "Content-Encoding": "gzip"}).status_code == 415


def test_a_body_has_a_limit_with_or_without_a_length(http):
    large = json.dumps({"slots": 3, "reason": "x" * MAX_BODY_BYTES}).encode()
    assert http().post(SCALE, content=large, headers=JSON).status_code == 413
    chunks = (large[at : at + 10_000] for at in range(0, len(large), 10_000))
    assert http().post(SCALE, content=chunks, headers=JSON).status_code == 413


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "evil.example:8400", "", "localhost@evil.example", "[::2]"]
)
def test_another_host_is_told_that_it_is_lost(http, host):
    for path in ("/v1/fleet", "/healthz", "/"):
        assert http().get(path, headers={"Host": host}).status_code == 421


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:1", "localhost:8400", "LOCALHOST", "[::1]:8400"])
def test_loopback_goes_by_its_names(http, host):
    assert http().get("/v1/fleet", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "name", ["..", "%2e%2e", "a%2Fb", "A", "é", "-a", "a" * 64, "a%00b", "a'--", "<script>", "%0a"]
)
def test_names_outside_the_grammar_are_refused(http, name):
    assert http().get(f"/v1/apps/{name}").status_code in (404, 422)
    assert http().get("/v1/events", params={"app": name}).status_code == 422


@pytest.mark.parametrize(
    "query", ["limit=1000000000", "limit=0", "limit=-1", "limit=x", "after=-1", "order=id;drop", "limit=1&sort=x"]
)
def test_pages_are_bounded_and_parameters_known(http, query):
    assert http().get(f"/v1/events?{query}").status_code == 422


PAYLOADS = [
    "' OR 1=1--",
    "%' --",
    "${jndi:ldap://x}",
    "<img src=x onerror=alert(1)>",
    "=cmd|' /C calc'!A0",
    "\x1b[31m",
    "a\r\nSet-Cookie: x",
]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_payloads_in_parameters_are_refused_and_never_repeated(http, payload):
    for path in ("/v1/events", "/v1/operations", "/v1/findings"):
        response = http().get(path, params={"app": payload})
        assert response.status_code == 422
        assert payload not in response.text


def test_no_answer_opens_a_door_to_other_sites(http):
    origin = {"Origin": "https://evil.example"}
    for response in (
        http().get("/v1/fleet", headers=origin),
        http(None).get("/console/", headers=origin),
        http(None).get("/v1/x"),
    ):
        assert not [name for name in response.headers if name.startswith("access-control-")]
        assert "set-cookie" not in response.headers
        assert response.headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in response.headers["content-security-policy"]
        assert response.headers["cache-control"] == "no-store"
    preflight = http().options("/v1/apps/orders/scale", headers={**origin, "Access-Control-Request-Method": "POST"})
    assert preflight.status_code == 405


def test_a_secret_in_a_request_is_in_no_answer(http, tokens):
    canary = "canary-7f3a9"
    answers = [
        http().post(SCALE, json={"slots": canary}),
        http().post("/v1/apps/orders/reset", json={"confirm": canary}),
        http().get("/v1/events", params={"app": f"{canary}!"}),
        http(None).get("/v1/fleet", headers={"Authorization": f"Bearer {canary}"}),
        http().get("/v1/fleet", headers={"Host": canary}),
        http().post(SCALE, content=canary.encode(), headers=JSON),
        http().get("/v1/apps/orders/stores/counts/keys/k", params={"isolation": canary}),
    ]
    for answer in answers:
        assert answer.status_code >= 400
        assert canary not in answer.text + str(answer.headers)
        assert not any(token in answer.text for token in tokens.values())


def test_a_defect_is_a_problem_without_its_details(http, fleet, monkeypatch):
    def broken():
        raise RuntimeError("password=hunter2 in /srv/secret")

    monkeypatch.setattr(fleet, "fleet", broken)
    response = http().get("/v1/fleet")
    assert response.status_code == 500
    assert "hunter2" not in response.text and "Traceback" not in response.text
    assert views.ProblemView.model_validate_json(response.content).detail == "the server has a defect"


def test_the_log_of_a_defect_has_its_trace_but_no_token(http, fleet, tokens, monkeypatch, capsys):
    monkeypatch.setattr(fleet, "fleet", lambda: 1 / 0)
    assert http().get("/v1/fleet").status_code == 500
    logged = "".join(capsys.readouterr())
    assert "ZeroDivisionError" in logged
    assert not any(token in logged for token in tokens.values())


class TestDoingItOnce:
    def test_a_replayed_key_gives_the_first_answer(self, http, fleet):
        key = {"Idempotency-Key": "intent-1"}
        first = http().post(SCALE, json={"slots": 3}, headers=key)
        fleet.settle()
        again = http().post(SCALE, json={"slots": 3}, headers=key)
        assert (again.status_code, again.content) == (first.status_code, first.content)
        assert len(fleet.log) == 1

    def test_the_key_with_another_body_or_verb_is_refused(self, http, fleet):
        key = {"Idempotency-Key": "intent-1"}
        assert http().post(SCALE, json={"slots": 3}, headers=key).status_code == 202
        assert http().post(SCALE, json={"slots": 4}, headers=key).status_code == 422
        assert http().post("/v1/apps/orders/probe", json={}, headers=key).status_code == 422
        assert http().post("/v1/apps/clicks/scale", json={"slots": 3}, headers=key).status_code == 422
        assert len(fleet.log) == 1

    def test_after_a_restart_the_service_still_knows(self, http, fleet, app):
        key = {"Idempotency-Key": "intent-1"}
        first = http().post(SCALE, json={"slots": 3}, headers=key).json()
        app.state.remembered = RememberedAnswers()
        assert http().post(SCALE, json={"slots": 3}, headers=key).json()["id"] == first["id"]
        app.state.remembered = RememberedAnswers()
        assert http().post(SCALE, json={"slots": 4}, headers=key).status_code == 422
        assert len(fleet.log) == 1

    def test_another_teams_answer_is_not_given_away(self, http):
        key = {"Idempotency-Key": "intent-1"}
        assert http("operator").post(SCALE, json={"slots": 3}, headers=key).status_code == 202
        assert http("web-operator").post(SCALE, json={"slots": 3}, headers=key).status_code == 403

    def test_an_error_may_be_tried_again(self, http, fleet):
        key = {"Idempotency-Key": "intent-2"}
        http().post(SCALE, json={"slots": 3})
        assert http().post(SCALE, json={"slots": 4}, headers=key).status_code == 409
        fleet.settle()
        assert http().post(SCALE, json={"slots": 4}, headers=key).status_code == 202

    @pytest.mark.parametrize("key", ["", "a b", "x" * 201, "é".encode()])
    def test_a_key_has_its_grammar(self, http, key):
        assert http().post(SCALE, json={"slots": 3}, headers={"Idempotency-Key": key}).status_code == 422

    def test_at_the_same_time_it_is_done_once(self):
        answers = RememberedAnswers()
        done, results = [], []

        def act():
            done.append(1)
            time.sleep(0.01)
            return len(done)

        threads = [threading.Thread(target=lambda: results.append(answers.once("k", b"f", act))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (len(done), set(results)) == (1, {1})

    def test_memory_is_bounded(self):
        answers = RememberedAnswers(max_entries=10)
        for number in range(100):
            answers.once(str(number), b"f", lambda: 1)
        assert len(answers._entries) == 10


class TestLookingAgain:
    def test_a_decision_on_what_has_changed_since_is_refused(self, http, fleet):
        version = http().get("/v1/apps/orders").headers["etag"]
        assert http().post(SCALE, json={"slots": 3}, headers={"If-Match": version}).status_code == 202
        fleet.settle()
        assert http().post(SCALE, json={"slots": 4}, headers={"If-Match": version}).status_code == 412
        assert len(fleet.log) == 1

    def test_progress_is_no_change(self, http, fleet):
        version = http().get("/v1/apps/orders").headers["etag"]
        app = fleet.apps_by_name["orders"]
        fleet.apps_by_name["orders"] = app.model_copy(update={"lag_records": 7, "slots_ready": 1})
        assert http().post(SCALE, json={"slots": 3}, headers={"If-Match": f'"other", {version}'}).status_code == 202

    def test_any_version_will_do_for_a_star(self, http):
        assert http().post(SCALE, json={"slots": 3}, headers={"If-Match": "*"}).status_code == 202


def test_every_change_is_in_the_log_once_with_who_asked(http, fleet):
    report = {
        "run_id": "r",
        "engine": "local",
        "started_at": "2026-01-01T00:00:00Z",
        "ended_at": "2026-01-01T00:00:00Z",
        "verdict": "clean",
    }
    calls = [
        ("/v1/apps/orders/scale", {"slots": 3}),
        ("/v1/apps/orders/probe", {}),
        ("/v1/apps/orders/stop", {}),
        ("/v1/apps/orders/start", {}),
        ("/v1/apps/orders/upgrade", {}),
        ("/v1/apps/orders/reset", {"confirm": "orders"}),
        ("/v1/apps/orders/retire", {"confirm": "orders"}),
        ("/v1/apps/orders/audits", report),
        ("/v1/apps/orders/bootstraps", {"name": "from-lake"}),
        ("/v1/apps/orders/bootstraps/orders-from-lake", {"token": 1, "state": "computed"}),
    ]
    for number, (path, body) in enumerate(calls):
        spoofed = {"X-Actor": "somebody", "X-Forwarded-User": "somebody", "Idempotency-Key": f"key-{number}"}
        for _ in range(2):
            assert http("operator").post(path, json=body, headers=spoofed).status_code < 300, path
        fleet.settle()
        assert len(fleet.log) == number + 1, path
    assert {event.actor for event in fleet.log} == {"operator"}


def test_who_calls_too_often_is_told_to_slow_down(app, tokens, http):
    from streamfleet_platform.api.gatekeeper import RateLimit
    from streamfleet_platform.errors import SlowDownError

    now = [0.0]
    limit = RateLimit(10, 20, lambda: now[0])
    for _ in range(20):
        limit.take("dagster")
    with pytest.raises(SlowDownError):
        limit.take("dagster")
    limit.take("somebody else")
    now[0] += 0.1
    limit.take("dagster")
    with pytest.raises(SlowDownError):
        limit.take("dagster")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(st.binary(max_size=200) | json_values.map(lambda value: json.dumps(value).encode()))
def test_whatever_a_body_is_it_is_taken_or_refused_with_a_reason(raw):
    for kind in (views.ScaleRequest, views.ApplyRequest, views.AuditReport, views.BootstrapMove, views.Request):
        try:
            parsed(kind, raw)
        except InvalidRequestError:
            continue


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    path=st.sampled_from(["scale", "reset", "retire", "upgrade", "probe", "audits", "bootstraps"]),
    body=json_values,
    key=st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=20),
)
def test_no_body_makes_the_server_fail(http, path, body, key):
    try:
        response = http("operator").post(
            f"/v1/apps/orders/{path}", json=body, headers={"Idempotency-Key": key.strip() or "k"}
        )
    except (ValueError, httpx.LocalProtocolError):
        return  # the client itself refuses to send NaN
    assert response.status_code < 500, response.text


def test_errors_are_one_tree():
    from streamfleet_platform.api.problems import STATUSES, problem_response

    def subclasses(kind):
        return [kind, *(each for child in kind.__subclasses__() for each in subclasses(child))]

    for kind in STATUSES:
        assert issubclass(kind, FleetError)
    for kind in subclasses(FleetError):
        if kind.__module__ == "streamfleet_platform.errors" and kind.__name__ != "InvalidDefinitionError":
            assert problem_response(kind("a fact")).status_code >= 400
