"""What audits report, on SQLite and on Postgres: runs once, findings that stay, come and go."""

from datetime import UTC, datetime, timedelta

import pytest

from streamfleet_platform.errors import NotFoundError
from streamfleet_platform.registry import audits
from streamfleet_platform.registry.tables import AuditRun, BootstrapRun

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def run(number, verdict="error"):
    ended = NOW + timedelta(hours=number)
    return AuditRun(
        app="one", id=f"a{number}", engine="local", started_at=NOW, ended_at=ended, verdict=verdict, findings=0
    )


def finding(rule, partition=0, **more):
    return {"rule": rule, "severity": "error", "topic": "t", "store": "s", "partition": partition, **more}


def record(database, audit, *found):
    return database.write(lambda session: audits.record_run(session, audit, [{"partition": 0}], found))


def states(database):
    with database.read() as session:
        return {(row.rule, row.partition): row.state for row in audits.findings(session, "one", None)}


def test_findings_stay_while_they_are_seen_and_are_gone_when_a_good_audit_does_not_see_them(database):
    record(database, run(1), finding("dirty"), finding("tombstones"))
    record(database, run(2), finding("dirty", summary="still", evidence={"offset": 7}), finding("dirty", 1))
    assert states(database) == {("dirty", 0): "open", ("tombstones", 0): "gone", ("dirty", 1): "open"}
    with database.read() as session:
        kept = next(row for row in audits.findings(session, "one", "open") if row.partition == 0)
    assert (kept.first_seen, kept.last_seen, kept.run) == (NOW + timedelta(hours=1), NOW + timedelta(hours=2), "a2")
    assert (kept.summary, kept.evidence) == ("still", {"offset": 7})
    record(database, run(3), finding("tombstones"))
    assert states(database)["tombstones", 0] == "open", "one that comes back is a new one"


def test_an_audit_that_could_not_look_everywhere_proves_nothing_gone(database):
    record(database, run(1), finding("dirty"))
    record(database, run(2, "unknown"))
    assert states(database) == {("dirty", 0): "open"}


def test_a_report_that_is_sent_twice_is_recorded_once(database):
    record(database, run(1), finding("dirty"))
    again = record(database, run(1, "ok"))
    assert again.verdict == "error" and states(database) == {("dirty", 0): "open"}
    with database.read() as session:
        assert len(audits.runs_of(session, "one", 10)) == 1
        with pytest.raises(NotFoundError):
            audits.get_run(session, "two", "a1")


def test_times_as_jobs_write_them():
    assert audits.parse_time("2026-01-01T01:00:00+01:00", NOW) == NOW
    assert audits.parse_time("2026-01-01T00:00:00", NOW) == NOW and audits.parse_time("soon", NOW) == NOW


def test_tokens_of_bootstraps_grow_and_belong_to_an_app(database):
    def begun(number, app):
        return BootstrapRun(
            id=f"{app}-{number}", app=app, name="lake", state="fenced", token=number, epoch=1, intent_id=f"{app}{number}",
            created_at=NOW, updated_at=NOW,
        )  # fmt: skip

    database.write(lambda session: session.add_all([begun(1, "one"), begun(2, "one"), begun(7, "two")]))
    with database.read() as session:
        assert audits.newest_token(session, "one") == 2 and audits.newest_token(session, "three") == 0
        assert [row.token for row in audits.bootstraps_of(session, "one")] == [2, 1]
        with pytest.raises(NotFoundError):
            audits.get_bootstrap(session, "one", "two-7")
