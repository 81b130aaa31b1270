"""The registry's database: SQLite (a file, or in memory for tests) or Postgres, by URL. Everything else here speaks through it.

A write is one transaction that begins by taking the write lock (SQLite: BEGIN IMMEDIATE, so that it cannot fail half-way for want
of it), and is repeated when the database was busy, up to a bound; then TransientError. Versioned rows are written by
compare-and-set: where somebody else was faster, a write that has read the row itself is repeated, and reads what they wrote; one
that was decided on an older look is refused by `touch`, with StaleError.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, make_url, update
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, OperationalError
from sqlalchemy.orm import Session
from sqlalchemy.orm.exc import StaleDataError
from sqlalchemy.pool import StaticPool
from sqlmodel import SQLModel

from streamfleet_platform.errors import InvalidRequestError, StaleError, TransientError

T = TypeVar("T")
Row = TypeVar("Row", bound=SQLModel)

BUSY_SECONDS = 5.0
"""How long one transaction waits for another."""
ATTEMPTS = 6
_READ = "streamfleet_read"
_SERIALIZATION = ("40001", "40P01", "55P03")
"""Postgres: somebody else was faster, a deadlock, a lock that was not got."""


class Database:
    """One registry. `close` it."""

    def __init__(self, url: str) -> None:
        self.is_sqlite = _kind(url) == "sqlite"
        self.engine = _sqlite(url) if self.is_sqlite else _postgres(url)
        self._readers = self.engine.execution_options(**{_READ: True})

    def close(self) -> None:
        self.engine.dispose()

    @contextmanager
    def read(self) -> Iterator[Session]:
        """Looks; whatever is changed in it is forgotten."""
        with self._told(), Session(self._readers, expire_on_commit=False) as session:
            yield session
            session.expunge_all()  # what was read stays as it was read

    def write(self, change: Callable[[Session], T]) -> T:
        """All of `change` or nothing. It is called again when the database was busy, or somebody else faster, so it has no effects
        of its own.
        """
        for attempt in range(ATTEMPTS):
            try:
                with Session(self.engine, expire_on_commit=False) as session, session.begin():
                    return change(session)
            except StaleDataError as error:
                if attempt == ATTEMPTS - 1:
                    raise StaleError(
                        "others changed the same again and again", hint="look again, then decide"
                    ) from error
            except IntegrityError:  # added by somebody else at the same time: looked at again, it is there
                if attempt == ATTEMPTS - 1:
                    raise
            except DBAPIError as error:
                if not _is_busy(error):
                    raise
                if attempt == ATTEMPTS - 1:
                    raise away(error) from error
            time.sleep(random.uniform(0.01, 0.05) * 2**attempt)  # noqa: S311  (spreads, hides nothing)
        raise AssertionError("unreachable")

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            if not _is_busy(error):
                raise
            raise away(error) from error


def touch(session: Session, row: Row, **changes: Any) -> Row:
    """Write a row that has a version, if nobody has since it was read."""
    if row in session:  # read in this transaction: if that is too old, `write` does it again
        for name, value in changes.items():
            setattr(row, name, value)
        session.flush()
        return row
    kind = type(row)
    table: Any = kind.__table__  # type: ignore[attr-defined]  # SQLModel's, of a table
    seen = row.version  # type: ignore[attr-defined]  # callers have rows with one
    keys = [column == getattr(row, column.name) for column in table.primary_key]
    done = session.execute(update(table).where(*keys, table.c.version == seen).values(version=seen + 1, **changes))
    if done.rowcount != 1:  # type: ignore[attr-defined]  # of an update
        raise StaleError(
            f"{kind.__name__.lower()} {'/'.join(str(getattr(row, c.name)) for c in table.primary_key)} was changed meanwhile",
            hint="look again, then decide",
        )
    return kind.model_validate({**row.model_dump(), **changes, "version": seen + 1})


def _kind(url: str) -> str:
    """The URL itself is not repeated: it may hold a password."""
    try:
        kind = make_url(url).get_backend_name()
    except ArgumentError:
        kind = ""
    if kind not in ("sqlite", "postgresql"):
        raise InvalidRequestError(
            "the registry's URL names no database that there is an adapter for",
            hint="write postgresql+psycopg://USER@HOST/DATABASE, or sqlite:////PATH/FILE",
        )
    return kind


def _sqlite(url: str) -> Engine:
    is_memory = url in ("sqlite://", "sqlite:///:memory:")
    settings: dict[str, Any] = {"connect_args": {"timeout": BUSY_SECONDS, "check_same_thread": False}}
    engine = create_engine(url, **settings, **({"poolclass": StaticPool} if is_memory else {}))

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # BEGIN is ours, below
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        is_read = connection.get_execution_options().get(_READ, False)
        connection.exec_driver_sql("BEGIN" if is_read else "BEGIN IMMEDIATE")

    return engine


def _postgres(url: str) -> Engine:
    options = f"-c lock_timeout={int(BUSY_SECONDS * 1000)}"
    return create_engine(url, pool_pre_ping=True, connect_args={"connect_timeout": 5, "options": options})


def _is_busy(error: DBAPIError) -> bool:
    if error.connection_invalidated or getattr(error.orig, "sqlstate", None) in _SERIALIZATION:
        return True
    text = str(error.orig)
    return isinstance(error, OperationalError) and (
        "locked" in text or "busy" in text or "connect" in text or "terminating" in text
    )


def away(error: DBAPIError) -> TransientError:
    return TransientError(
        f"the registry does not answer: {str(error.orig).strip()}",
        hint="nothing was changed; try again",
        retry_after=2.0,
    )
