"""Forgets revisions that nothing needs any more, and deletes exported code that no revision names: a branch that is followed would
fill the disk otherwise. Called by changing.py after every plan and every apply.

    kept: what an app is at, what ran well last, what a waiting reset brings; what workers run; what operations that are not over
    go to or come from; and the last few of every app

A plan exports what it compiles. Nothing of that is kept: whoever applies it plans again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import delete, select
from sqlalchemy.orm import Session
from sqlmodel import col

from streamfleet_platform.operations.code_directories import delete_unused
from streamfleet_platform.registry import apps, journal
from streamfleet_platform.registry.database import Database
from streamfleet_platform.registry.tables import Revision
from streamfleet_platform.runtime.api import Runtime

KEPT_REVISIONS = 5
"""Of every app, by when they were applied, whether or not anything is at them."""
Key = tuple[str, str]


class Pruning:
    """Nothing is done while somebody else plans or applies: the next one will."""

    def __init__(self, database: Database, runtime: Runtime, code: Path) -> None:
        self._database = database
        self._runtime = runtime
        self._code = code

    def after_plan(self) -> None:
        def used() -> set[str]:
            with self._database.read() as session:
                return _code_ids(session)

        delete_unused(self._code, used, self._runtime)

    def after_apply(self) -> None:
        """Under the lock of the code too: no apply can come to name a revision that is about to be forgotten."""
        running = {(worker.app, worker.revision) for worker in self._runtime.list()}

        def change(session: Session) -> set[str]:
            for app, revision in _superseded(session, running | _named(session)):
                session.execute(delete(Revision).where(col(Revision.app) == app, col(Revision.id) == revision))
            return _code_ids(session)

        delete_unused(self._code, lambda: self._database.write(change), self._runtime)


def _code_ids(session: Session) -> set[str]:
    return set(session.scalars(select(col(Revision.code_id)).distinct()))


def _named(session: Session) -> set[Key]:
    named: set[tuple[str, str | None]] = set()
    for row in apps.all_apps(session):
        wanted = row.wanted_revision if row.wanted_generation != row.generation else None
        named |= {(row.name, revision) for revision in (row.revision, row.good_revision, wanted)}
    for workers in apps.all_workers(session).values():
        named |= {(worker.app, worker.revision) for worker in workers}
    for operation in journal.busy(session):
        named |= {(operation.app, operation.params.get(name)) for name in ("revision", "from")}
    return {(app, revision) for app, revision in named if revision is not None}


def _superseded(session: Session, named: set[Key]) -> Iterator[Key]:
    columns = (col(Revision.app), col(Revision.id))
    younger: dict[str, int] = {}
    for app, revision in session.execute(select(*columns).order_by(col(Revision.created_at).desc())).all():
        younger[app] = younger.get(app, 0) + 1
        if younger[app] > KEPT_REVISIONS and (app, revision) not in named:
            yield app, revision
