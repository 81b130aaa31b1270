"""What every FleetService does, the one in memory and the real one alike: the API rests on this."""

import pytest

from streamfleet_platform import views
from streamfleet_platform.errors import ConflictError, FleetError, InvalidRequestError, NotFoundError, StaleError
from streamfleet_platform.model.operation import OperationKind
from streamfleet_platform.service import FleetService


def begin(service: FleetService, kind: OperationKind, intent: str, **params: object) -> views.OperationView:
    return service.start_operation(kind, "orders", dict(params), actor="ada", intent_id=intent)


class FleetServiceContract:
    """Fixtures of a subclass: `service`, with a running app `orders` of team `payments` that has two slots, and may have more;
    `settle()`, which lets operations that were begun come to their end.
    """

    def test_an_app_is_the_same_in_the_list_and_by_its_name(self, service):
        (listed,) = [app for app in service.apps() if app.name == "orders"]
        assert service.app("orders").revision == listed.revision
        assert service.owner_of("orders") == listed.owner == "payments"

    def test_what_is_not_there_is_said(self, service):
        for ask in (service.app, service.owner_of, service.provenance, service.reset_preview, service.doors):
            with pytest.raises(NotFoundError):
                ask("nowhere")
        with pytest.raises(NotFoundError):
            service.operation("nowhere")
        with pytest.raises(NotFoundError):
            service.start_operation(OperationKind.PROBE, "nowhere", {}, actor="ada", intent_id="1")

    def test_the_same_intent_gives_the_first_operation_and_one_event(self, service, settle):
        before = len(service.events(None, 0, 1000))
        first = begin(service, OperationKind.SCALE, "sale", slots=3, reason="")
        assert begin(service, OperationKind.SCALE, "sale", slots=3, reason="").id == first.id
        settle()
        assert begin(service, OperationKind.SCALE, "sale", slots=3, reason="").id == first.id
        asked = [event for event in service.events(None, 0, 1000)[before:] if event.actor == "ada"]
        assert len(asked) == 1

    def test_an_intent_that_was_another_one_is_refused(self, service, settle):
        begin(service, OperationKind.SCALE, "sale", slots=3, reason="")
        settle()
        with pytest.raises(InvalidRequestError):
            begin(service, OperationKind.SCALE, "sale", slots=4, reason="")

    def test_one_operation_at_a_time(self, service):
        begin(service, OperationKind.SCALE, "one", slots=3, reason="")
        with pytest.raises(ConflictError):
            begin(service, OperationKind.SCALE, "two", slots=4, reason="")

    def test_a_reset_on_an_older_preview_is_refused(self, service):
        with pytest.raises(StaleError):
            begin(service, OperationKind.RESET, "r", confirm="orders", preview="another", input_topics="earliest")

    def test_a_scale_that_was_decided_at_another_number_of_slots_is_refused(self, service):
        before = len(service.events(None, 0, 1000))
        with pytest.raises(StaleError):
            begin(service, OperationKind.SCALE, "late", slots=4, reason="", from_slots=7)
        assert len(service.events(None, 0, 1000)) == before

    def test_events_come_in_order_after_an_id_or_as_the_newest(self, service, settle):
        for number in range(3):
            begin(service, OperationKind.SCALE, str(number), slots=3 + number, reason="")
            settle()
        everything = service.events(None, 0, 1000)
        ids = [event.id for event in everything]
        assert ids == sorted(ids)
        assert [event.id for event in service.events(None, 0, 2)] == ids[-2:]
        assert [event.id for event in service.events(None, ids[0], 1)] == ids[1:2]

    def test_an_audit_is_recorded_once(self, service):
        report = views.AuditReport(
            run_id="run-1",
            engine="local",
            started_at="2026-01-01T00:00:00+00:00",
            ended_at="2026-01-01T00:01:00+00:00",
            verdict="clean",
            report_html="<p>clean</p>",
        )
        for _ in range(2):
            assert service.record_audit("orders", report, actor="ada").id == "run-1"
        assert [run.id for run in service.audits("orders", 10)] == ["run-1"]
        assert service.audit_html("orders", "run-1") == "<p>clean</p>"

    def test_an_operation_that_is_over_cannot_be_cancelled(self, service, settle):
        begun = begin(service, OperationKind.SCALE, "one", slots=3, reason="")
        settle()
        with pytest.raises(FleetError):
            service.cancel(begun.id, actor="ada")
