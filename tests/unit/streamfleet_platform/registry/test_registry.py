"""The registry on SQLite and on Postgres: the same tests for both."""

import threading
from datetime import UTC, datetime, timedelta

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import select, text
from sqlmodel import SQLModel

from streamfleet_platform.errors import ConflictError, InvalidRequestError, StaleError, TransientError
from streamfleet_platform.model.operation import OperationState
from streamfleet_platform.registry import history, journal
from streamfleet_platform.registry.database import Database, touch
from streamfleet_platform.registry.lease import Leases, NotLeaderError
from streamfleet_platform.registry.migrations import migrate
from streamfleet_platform.registry.tables import Event, Operation

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def operation(number, app="one"):
    return Operation(
        id=f"o{number}", app=app, kind="scale", state="planned", intent_id=f"i{number}", actor="ann", created_at=NOW
    )


def test_migrations_give_the_tables_that_the_code_has(database):
    migrate(database)
    with database.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), SQLModel.metadata) == []


def test_a_registry_of_a_newer_version_is_left_alone_and_said_so(database):
    database.write(lambda session: session.execute(text("UPDATE alembic_version SET version_num = '9999'")))
    with pytest.raises(ConflictError, match=r"another version of streamfleet.*9999"):
        migrate(database)


@pytest.mark.parametrize("url", ["nonsense", "postgres://fleet:word@db/x", "mysql://fleet:word@db/x", ""])
def test_an_address_of_no_registry_is_refused_and_not_repeated(url):
    with pytest.raises(InvalidRequestError, match="names no database") as refused:
        Database(url)
    assert "word" not in str(refused.value)


@pytest.mark.parametrize("url", ["postgresql://fleet:word@127.0.0.1:1/x", "sqlite:////nowhere/at/all/registry.db"])
def test_a_registry_that_cannot_be_reached_is_told_without_its_password(url):
    database = Database(url)
    with pytest.raises(TransientError, match="the registry does not answer") as told:
        migrate(database)
    assert "word" not in str(told.value)
    database.close()


def test_two_servers_that_start_together_migrate_once(url):
    failures = []

    def start():
        mine = Database(url)
        try:
            migrate(mine)
        except Exception as error:  # told below
            failures.append(error)
        finally:
            mine.close()

    threads = [threading.Thread(target=start) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert failures == []


def test_a_row_that_somebody_else_changed_is_not_written(database):
    database.write(lambda session: session.add(operation(1)))
    with database.read() as session:
        mine, theirs = journal.get(session, "o1"), None
    theirs = database.write(lambda session: touch(session, mine, reason="first"))
    assert (mine.version, theirs.version) == (1, 2)
    with pytest.raises(StaleError, match="was changed meanwhile"):
        database.write(lambda session: touch(session, mine, reason="second"))


def test_an_app_has_one_operation_at_a_time_and_is_free_when_it_is_over(database):
    first = database.write(lambda session: journal.begin(session, operation(1)))
    with pytest.raises(ConflictError, match="scale o1 of app one is planned"):
        database.write(lambda session: journal.begin(session, operation(2)))
    database.write(lambda session: journal.begin(session, operation(3, "two")))
    database.write(lambda session: journal.move(session, first, OperationState.CANCELLED, NOW))
    database.write(lambda session: journal.begin(session, operation(4)))


def test_one_leader_by_a_token_that_grows(database):
    clock = [NOW]
    leases = Leases(database, lambda: clock[0], seconds=10)
    first = leases.acquire("a")
    assert first.token == 1 and leases.acquire("b") is None and leases.acquire("a") == first
    clock[0] += timedelta(seconds=11)
    second = leases.acquire("b")
    assert second.token == 2 and leases.acquire("a") is None
    leases.write(second, lambda _: None)
    with pytest.raises(NotLeaderError):
        leases.write(first, lambda _: None)
    leases.release(second)
    assert leases.acquire("a").token == 3


def test_a_leader_whose_lease_ran_out_cannot_write_even_if_nobody_followed(database):
    clock = [NOW]
    leases = Leases(database, lambda: clock[0], seconds=10)
    leader = leases.acquire("a")
    clock[0] += timedelta(seconds=11)
    with pytest.raises(NotLeaderError):
        leases.write(leader, lambda session: session.add(operation(1)))
    with database.read() as session:
        assert journal.latest(session, None, 5) == []


def test_the_event_log_is_only_added_to_and_keeps_its_times(database):
    database.write(lambda session: history.add_event(session, NOW, "apply", "done", actor="ann", app="one", count=1))
    for statement in ("UPDATE event SET actor = 'x'", "DELETE FROM event"):
        with pytest.raises(Exception, match="append-only"):
            database.write(lambda session, what=statement: session.execute(text(what)))
    with database.read() as session:
        [event] = session.scalars(select(Event)).all()
    assert (event.at, event.actor, event.data) == (NOW, "ann", {"count": 1})


def test_writers_at_once_lose_nothing(database):
    database.write(lambda session: session.add(operation(1)))

    def add(number):
        def change(session):
            row = journal.get(session, "o1")
            touch(session, row, reason=str(number))

        for _ in range(100):
            try:
                database.write(change)
                break
            except StaleError:
                continue

    threads = [threading.Thread(target=add, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    with database.read() as session:
        assert journal.get(session, "o1").version == 9, "it was written, and changed eight times"
