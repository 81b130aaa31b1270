"""Who may act: one server holds the lease, and shows its fencing token with every write. Used by the server's loop, and by
everything that writes for it.

The token grows with every new holder. A server that was paused past its lease finds another token, or an expired lease of its own,
and its write is refused: inside the same transaction, so there is no moment between looking and writing.

It is also above whatever the runtime has seen: a registry that was restored from a backup, or begun anew beside workers that run,
counts from further back, and its leader would be taken for one of long ago.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from sqlalchemy import select
from sqlalchemy.orm import Session

from streamfleet_platform.errors import ConflictError
from streamfleet_platform.registry.database import Database
from streamfleet_platform.registry.tables import Lease

T = TypeVar("T")

NAME = "leader"


class NotLeaderError(ConflictError):
    """Another server acts: stop acting, and try to become leader again."""


@dataclass(frozen=True)
class Leadership:
    """What a leader shows."""

    holder: str
    token: int


class Leases:
    """`clock` gives UTC; `newest_seen` the newest token that any act has shown outside of the registry."""

    def __init__(
        self,
        database: Database,
        clock: Callable[[], datetime],
        seconds: float = 15.0,
        newest_seen: Callable[[], int] = int,
    ) -> None:
        self._database = database
        self._clock = clock
        self._newest_seen = newest_seen
        self.seconds = seconds
        self._for = timedelta(seconds=seconds)

    def acquire(self, holder: str) -> Leadership | None:
        """Take the lease, or keep it; None while another holds it."""

        def change(session: Session) -> Leadership | None:
            now = self._clock()
            row = session.scalar(select(Lease).where(Lease.name == NAME).with_for_update())  # type: ignore[arg-type]
            if row is None:
                row = Lease(name=NAME, holder=holder, token=0, expires_at=now)
                session.add(row)
            if row.expires_at > now:
                if row.holder != holder:
                    return None
            else:  # also where it was ours: somebody may have acted meanwhile
                row.holder, row.token = holder, max(row.token, self._newest_seen()) + 1
            row.expires_at = now + self._for
            return Leadership(holder, row.token)

        return self._database.write(change)

    def renew(self, leadership: Leadership) -> None:
        """Keep it for longer, if it is still ours: a pass may take its time. Who has lost it is told at the next write."""

        def change(session: Session) -> None:
            row = session.scalar(select(Lease).where(Lease.name == NAME).with_for_update())  # type: ignore[arg-type]
            now = self._clock()
            if (
                row is not None
                and (row.holder, row.token) == (leadership.holder, leadership.token)
                and row.expires_at > now
            ):
                row.expires_at = now + self._for

        self._database.write(change)

    def release(self, leadership: Leadership) -> None:
        """Let the next one in at once. Harmless where it is no longer ours."""

        def change(session: Session) -> None:
            row = session.get(Lease, NAME)
            if row is not None and row.token == leadership.token:
                row.expires_at = self._clock()

        self._database.write(change)

    def check(self, session: Session, leadership: Leadership) -> None:
        """Inside the transaction that writes."""
        row = session.scalar(select(Lease).where(Lease.name == NAME).with_for_update(read=True))  # type: ignore[arg-type]
        if row is None or row.token != leadership.token or row.expires_at <= self._clock():
            newer = "nobody's" if row is None else f"{row.token}"
            raise NotLeaderError(
                f"this server's token is {leadership.token}, the lease is {newer}", hint="another server acts"
            )

    def write(self, leadership: Leadership, change: Callable[[Session], T]) -> T:
        """A write that only the leader may do."""

        def checked(session: Session) -> T:
            self.check(session, leadership)
            return change(session)

        return self._database.write(checked)

    def holder(self) -> str | None:
        with self._database.read() as session:
            row = session.get(Lease, NAME)
            return row.holder if row is not None and row.expires_at > self._clock() else None
