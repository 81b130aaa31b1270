"""Two callers who have both read a row before either writes it: neither loses what the other wrote, on both databases."""

import threading
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from streamfleet_platform.errors import ConflictError
from streamfleet_platform.registry import apps, journal
from streamfleet_platform.registry.tables import App, Operation
from streamfleet_platform.server.changing import Changing

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TOGETHER_SECONDS = 1.0
"""SQLite lets one in at a time, and the other one is not waited for."""


def operation(state="asking", **params):
    return Operation(
        id="o1", app="one", kind="upgrade", state=state, intent_id="i1", actor="ann", created_at=NOW, params=params,
        busy_app="one",
    )  # fmt: skip


def app():
    return App(
        name="one", owner="team-a", cluster="dev", application_id="one", generation=1, wanted_generation=1, revision="r",
        wanted_revision="r", desired="running", slots=1, phase="running", phase_since=NOW,
    )  # fmt: skip


@pytest.fixture
def changing(database):
    return Changing(database, None, None, None, lambda: NOW, None, code=Path("unused"))


def at_once(monkeypatch, module, reader, *acts):
    """Each act reads by `module.reader`; none goes on before all have, the first time."""
    together, waited, read = threading.Barrier(len(acts)), threading.local(), getattr(module, reader)

    def reading(session, name):
        row = read(session, name)
        if not getattr(waited, "once", False):
            waited.once = True
            with suppress(threading.BrokenBarrierError):
                together.wait(TOGETHER_SECONDS)
        return row

    monkeypatch.setattr(module, reader, reading)
    raised = []

    def run(act):
        try:
            act()
        except Exception as error:  # handed back
            raised.append(error)

    threads = [threading.Thread(target=run, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return raised


def now(database):
    with database.read() as session:
        return journal.get(session, "o1")


def test_of_two_approvals_none_is_lost(database, changing, monkeypatch):
    database.write(lambda session: session.add(operation(approvals=3)))
    acts = [lambda name=name: changing.approve("o1", actor=name) for name in ("eve", "kim")]
    assert at_once(monkeypatch, journal, "get", *acts) == []
    row = now(database)
    assert (row.params["approved_by"], row.state, row.version) == (["eve", "kim"], "asking", 3)
    assert changing.approve("o1", actor="tom").state == "planned"


def test_the_second_of_two_approvals_that_are_enough_begins_it(database, changing, monkeypatch):
    database.write(lambda session: session.add(operation(approvals=2)))
    acts = [lambda name=name: changing.approve("o1", actor=name) for name in ("eve", "kim")]
    assert at_once(monkeypatch, journal, "get", *acts) == []
    assert now(database).state == "planned"


def test_what_is_cancelled_and_approved_is_one_of_both(database, changing, monkeypatch):
    database.write(lambda session: session.add(operation(approvals=1)))
    acts = [lambda: changing.approve("o1", actor="eve"), lambda: changing.cancel("o1", actor="kim")]
    raised = at_once(monkeypatch, journal, "get", *acts)
    assert now(database).state == "cancelled", "what was approved first is cancelled too, before it has begun"
    assert all(isinstance(error, ConflictError) and "asks for nothing" in str(error) for error in raised)


def test_a_cancellation_and_what_the_operation_writes_both_stay(database, changing, monkeypatch):
    database.write(lambda session: session.add(operation("running")))

    def step():
        def change(session):
            row = journal.get(session, "o1")
            row.result = {**row.result, "slots": 2}

        database.write(change)

    assert at_once(monkeypatch, journal, "get", lambda: changing.cancel("o1", actor="eve"), step) == []
    row = now(database)
    assert (row.params, row.result, row.version) == ({"cancelled_by": "eve"}, {"slots": 2}, 3)


def test_two_columns_of_an_app_with_json_in_it(database, monkeypatch):
    database.write(lambda session: session.add(app()))

    def raised(store):
        def change(session):
            row = apps.get_app(session, "one")
            row.epochs = {**row.epochs, store: 1}

        return lambda: database.write(change)

    assert at_once(monkeypatch, apps, "get_app", raised("a"), raised("b")) == []
    with database.read() as session:
        assert apps.get_app(session, "one").epochs == {"a": 1, "b": 1}


def test_what_the_leader_sees_of_an_app_is_in_nobodys_way(database):
    def change(session):
        row = apps.get_app(session, "one")
        row.slots = 2

    database.write(lambda session: session.add(app()))
    seen = [{"name": "one", "phase": "warming", "reason": "so", "observed": {"tasks": 8}}]
    database.write(lambda session: apps.put_sights(session, seen))
    database.write(change)
    with database.read() as session:
        row = apps.get_app(session, "one")
    assert (row.phase, row.observed, row.slots, row.version) == ("warming", {"tasks": 8}, 2, 2)


def test_who_adds_what_another_has_just_added_finds_it(database, monkeypatch):
    def begin(session):
        found = journal.by_intent(session, "i1")
        return found or journal.begin(session, operation("planned"))

    results = []
    acts = [lambda: results.append(database.write(begin).id)] * 2
    assert at_once(monkeypatch, journal, "by_intent", *acts) == [] and results == ["o1", "o1"]
