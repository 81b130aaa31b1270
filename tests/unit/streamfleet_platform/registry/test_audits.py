"""What audits report, on SQLite and on Postgres: runs once, findings that stay, come and go."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from streamfleet_platform.errors import NotFoundError
from streamfleet_platform.registry import audits
from streamfleet_platform.registry.database import Database
from streamfleet_platform.registry.migrations import migrate
from streamfleet_platform.registry.tables import AuditRun, BootstrapRun, Finding

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


def drifted(setting, value):
    evidence = {"config": setting, "expected": "compact", "found": value}
    return {**finding("config_drift", None, evidence=evidence), "summary": f"{setting} is {value}"}


def test_two_settings_that_drifted_on_one_topic_are_two_findings_each_of_which_stays_and_goes_by_itself(database):
    for number, value in enumerate(("delete", "delete", "compact,delete"), start=1):
        record(database, run(number), drifted("cleanup.policy", value), drifted("retention.ms", "1000"))
    with database.read() as session:
        found = [(row.summary, row.state, row.run) for row in audits.findings(session, "one", None)]
    assert found == [("cleanup.policy is compact,delete", "open", "a3"), ("retention.ms is 1000", "open", "a3")]
    record(database, run(4), drifted("retention.ms", "1000"))
    with database.read() as session:
        assert [row.state for row in audits.findings(session, "one", None)] == ["gone", "open"]


def test_findings_that_a_report_cannot_tell_apart_do_not_grow(database):
    for number in range(1, 4):
        record(database, run(number), finding("odd", summary="a"), finding("odd", summary="b"))
    with database.read() as session:
        assert [(row.summary, row.state) for row in audits.findings(session, "one", None)] == [
            ("a", "open"),
            ("b", "open"),
        ]


def test_a_registry_of_before_gives_its_findings_of_settings_their_identity(url):
    database = Database(url)
    migrate(database, "0002")
    before = json.dumps(["config_drift", "t", "s", None])
    about = {"app": "one", "topic": "t", "store": "s", "rule": "config_drift", "severity": "error", "run": "a1"}
    times = {"first_seen": NOW, "last_seen": NOW}

    def old(setting):
        return Finding(**about, **times, identity=before, evidence={"config": setting})

    settings = ["cleanup.policy", "retention.ms", "cleanup.policy", "retention.ms"]
    database.write(lambda session: session.add_all([old(setting) for setting in settings]))
    migrate(database)
    record(database, run(2), drifted("cleanup.policy", "delete"), drifted("retention.ms", "1000"))
    with database.read() as session:
        rows = audits.findings(session, "one", None)
        assert [(row.evidence["config"], row.state) for row in rows] == [
            ("cleanup.policy", "open"), ("retention.ms", "open"), ("cleanup.policy", "gone"), ("retention.ms", "gone"),
        ]  # fmt: skip
        assert rows[0].first_seen == NOW
    database.close()


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
