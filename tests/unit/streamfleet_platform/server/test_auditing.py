"""Audits and error budgets through the server, over a simulated world."""

from dataclasses import replace

import pytest
from tests.unit.streamfleet_platform.simulated_world import Lab

from streamfleet_platform import views
from streamfleet_platform.errors import InvalidRequestError, NotFoundError
from streamfleet_platform.model.operation import OperationKind

CHANGELOG = "one-activity-by-minute-changelog"


@pytest.fixture
def lab(tmp_path):
    lab = Lab(tmp_path)
    yield lab
    lab.server.close()


def report(**more):
    given = {
        "run_id": "a1", "engine": "local", "started_at": "2026-01-01T00:00:00Z", "ended_at": "2026-01-01T00:01:00Z",
        "verdict": "errors", "summary": {}, "partitions": [],
        "findings": [{"rule": "dirty", "severity": "error", "topic": CHANGELOG, "partition": 0}],
        "report_html": "<html></html>",
    }  # fmt: skip
    return views.AuditReport.model_validate(given | more)


def test_an_audit_is_told_what_only_the_registry_knows(lab):
    fleet = lab.source / "fleet.yaml"
    fleet.write_text(fleet.read_text() + "  secrets: {env: [W]}\n")
    lab.deployed(more='run: {config: {sasl.username: who, sasl.password: "${w}"}, secrets: {w: {env: W}}}')
    spec = lab.fleet.audit_spec("one").spec
    assert (spec["application_id"], spec["generation"], spec["mode"]) == ("one", 1, "deep")
    [store] = spec["stores"]
    assert (store["changelog"], store["partitions"], store["key_format"]) == (CHANGELOG, 4, "window")
    assert [topic["name"] for topic in spec["repartition_topics"]] == ["one-by-country-repartition"]
    assert "${" not in str(spec), "no reference to a secret of the app"


def test_what_an_audit_found_is_recorded_and_told(lab):
    lab.deployed()
    run = lab.fleet.record_audit("one", report(), actor="auditor")
    assert (run.verdict, run.findings) == ("errors", 1)
    assert [found.rule for found in lab.fleet.findings("one", "open")] == ["dirty"]
    assert lab.fleet.audit_html("one", "a1") == "<html></html>"
    assert any(event.kind == "audit" and event.actor == "auditor" for event in lab.fleet.events("one", 0, 100))
    with pytest.raises(NotFoundError):
        lab.fleet.audit_html("one", "other")
    with pytest.raises(NotFoundError):
        lab.fleet.record_audit("two", report(), actor="auditor")


def test_a_finding_that_says_not_what_it_is_is_refused_and_nothing_is_recorded(lab):
    lab.deployed()
    with pytest.raises(InvalidRequestError, match="no rule"):
        lab.fleet.record_audit("one", report(findings=[{"severity": "error"}]), actor="auditor")
    assert list(lab.fleet.audits("one", 10)) == []


def test_a_spent_error_budget_pauses_the_app_until_a_person_starts_it(lab):
    lab.deployed(more="errors: {onBadRecord: continue, budget: {rate: 0.01, window: 1h, then: pause}}")
    observe, counts = lab.observer.observe, {"processed_records": 0, "bad_records": 0, "is_paused": False}

    def observed(apps):
        return {
            name: replace(sight, workers={slot: replace(one, **counts) for slot, one in sight.workers.items()})
            for name, sight in observe(apps).items()
        }

    lab.observer.observe = observed
    lab.step()
    counts |= {"processed_records": 100, "bad_records": 50}
    lab.step()
    lab.step()
    app = lab.fleet.app("one")
    assert app.phase == "quarantined" and "50 of 100 records" in app.reason
    assert ("one", 0, "pause") in lab.doors.orders
    counts["is_paused"] = True
    assert lab.run(lab.operate(OperationKind.START).id).state == "succeeded"
    lab.step()
    assert lab.doors.orders[-1] == ("one", 0, "resume")
    counts["is_paused"] = False
    lab.step()
    lab.step()
    assert lab.fleet.app("one").phase == "running", "what was forgiven does not count again"
