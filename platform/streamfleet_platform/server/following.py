"""Acts on Git by itself: the leader looks at the branch that fleet.yaml says to follow, and plans, or applies, the commits it comes
to. Made by process.py; a thread of its own, because planning may compile.

    branch moved ──> noticed ──> refused     the definitions are invalid: told, never applied
       (written         ├──────> told        follow.apply is `plan`: what it would change, and nothing more
        down first)     ├──────> waiting     some apps were busy: those are tried again at the next look
                        └──────> applied

`follow` is that of the definitions in force: somebody has applied them once. The commit is the intent id, so that a server which is
killed at any moment is followed by one that does nothing twice; a branch that comes back to an older commit is another intent, of
the same name with a number. Applying another commit by hand stands until the branch moves. Nothing is fetched: whoever pushes to
the repository, or fetches into it, decides what there is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Literal

import structlog
from pydantic import BaseModel, ConfigDict
from sqlalchemy.orm import Session

from streamfleet_platform import views
from streamfleet_platform.definitions.source import Source
from streamfleet_platform.errors import FleetError, StaleError
from streamfleet_platform.model.fleet_definition import Follow
from streamfleet_platform.reconcile.fleet_state import definition_of
from streamfleet_platform.registry import apps, history
from streamfleet_platform.registry.database import Database
from streamfleet_platform.registry.lease import Leadership, Leases, NotLeaderError
from streamfleet_platform.registry.tables import FleetState, Intent
from streamfleet_platform.service import FleetService

log = structlog.get_logger(__name__)

ACTOR = "git"
TICK_SECONDS = 0.5
"""How often it is asked whether it is time to look."""
_SHORT = 12


class Followed(BaseModel):
    """The commit that the branch was at last, and how far it was taken. Kept in the registry."""

    model_config = ConfigDict(frozen=True)

    branch: str = ""
    commit: str = ""
    intent: str = ""
    state: Literal["noticed", "told", "waiting", "applied", "refused"] = "noticed"
    number: int = 0
    """Commits that were noticed so far."""
    tries: int = 0
    busy: tuple[str, ...] = ()
    """Apps that an operation was under way on; they are left of the commit."""

    def is_done(self, follow: Follow) -> bool:
        return self.state in ("applied", "refused") or (self.state == "told" and follow.apply == "plan")

    @property
    def words(self) -> str:
        return f"commit {self.commit[:_SHORT]} of branch {self.branch}"


class Following:
    """`leadership` is None while another server acts. `service` plans and applies, as it does for callers."""

    def __init__(
        self,
        database: Database,
        leases: Leases,
        source: Source,
        service: FleetService,
        clock: Callable[[], datetime],
        leadership: Callable[[], Leadership | None],
    ) -> None:
        self._database = database
        self._leases = leases
        self._source = source
        self._service = service
        self._clock = clock
        self._leadership = leadership
        self._looked_at: datetime | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="follow", daemon=True)
        self.problem: str | None = None
        """Why the branch cannot be followed now; the next look may find it well."""

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: float = 60.0) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def _run(self) -> None:
        while not self._ended.wait(TICK_SECONDS):
            self.step()

    def step(self) -> None:
        """Looks if it is time to, and does what is to be done."""
        leadership = self._leadership()
        if leadership is None:
            self._looked_at = self.problem = None
            return
        try:
            self._step(leadership)
        except (NotLeaderError, StaleError) as error:
            log.info("follows no longer", error=str(error))
        except FleetError as error:
            self._trouble(str(error))
        except Exception as error:
            log.exception("branch could not be followed")
            self._trouble(f"{type(error).__name__}: {error}")

    def _trouble(self, why: str) -> None:
        told = f"the branch cannot be followed: {why}"
        if told != self.problem:
            log.warning("branch cannot be followed", error=why)
        self.problem = told

    def _step(self, leadership: Leadership) -> None:
        with self._database.read() as session:
            state = apps.fleet_state(session)
        definition, now = definition_of(state), self._clock()
        follow = None if definition is None else definition.spec.follow
        if follow is None:
            self._looked_at = self.problem = None
            return
        if self._looked_at is not None and now - self._looked_at < timedelta(milliseconds=follow.every):
            return
        self._looked_at = now
        self._look(leadership, follow, Followed.model_validate(state.followed))
        self.problem = None

    def _look(self, leadership: Leadership, follow: Follow, known: Followed) -> None:
        commit = self._source.head_of(follow.branch)
        if (known.branch, known.commit) != (follow.branch, commit):
            known = self._noticed(leadership, follow.branch, commit)
        if known.is_done(follow):
            return
        plan = self._service.plan(views.SourceRequest(ref=commit))
        if plan.problems:
            self._refuse(leadership, known, plan)
        elif follow.apply == "plan":
            self._write(leadership, known, "told", _would(known, plan), are_valid=True)
        else:
            self._apply(leadership, known, plan)

    def _noticed(self, leadership: Leadership, branch: str, commit: str) -> Followed:
        """Written down before anything is done about it, with the intent under which that will be."""

        def change(session: Session) -> Followed:
            row = apps.fleet_state(session)
            number = Followed.model_validate(row.followed).number + 1
            intent = commit if session.get(Intent, commit) is None else f"{commit}-{number}"
            followed = Followed(branch=branch, commit=commit, intent=intent, number=number)
            row.followed = followed.model_dump(mode="json")
            session.add(row)
            return followed

        return self._leases.write(leadership, change)

    def _apply(self, leadership: Leadership, known: Followed, plan: views.PlanView) -> None:
        intent = known.intent if known.tries == 0 else f"{known.intent}:{known.tries}"
        request = views.ApplyRequest(ref=known.commit, apps=known.busy)
        result = self._service.apply(request, actor=ACTOR, intent_id=intent)
        blocked = {change.app: change.blocked for change in plan.changes if change.blocked is not None}
        refused = {change.app: change.blocked for change in result.plan.changes if change.blocked is not None}
        busy = tuple(sorted(refused.keys() - blocked.keys()))  # nothing was wrong with them when it was planned
        told = [f"{known.words} was applied: {len(result.operations)} operations"]
        told += [f"not {app}: {why}" for app, why in sorted(refused.items())]
        after = known.model_copy(update={"busy": busy, "tries": known.tries + 1})
        # what waits was told once: the apps that are left are named at the end
        is_news = known.tries == 0 or result.operations or not busy
        self._write(leadership, after, "waiting" if busy else "applied", "; ".join(told) if is_news else None)

    def _refuse(self, leadership: Leadership, known: Followed, plan: views.PlanView) -> None:
        count = len(plan.problems)
        more = "" if count == 1 else f" (and {count - 1} more)"
        told = f"{known.words} is invalid and is not applied: {plan.problems[0]}{more}"
        self._write(leadership, known, "refused", told, problems=[f"{known.words}: {text}" for text in plan.problems])

    def _write(
        self,
        leadership: Leadership,
        known: Followed,
        state: Literal["told", "waiting", "applied", "refused"],
        told: str | None,
        *,
        problems: Sequence[str] = (),
        are_valid: bool = False,
    ) -> None:
        """With what is told about it, in one transaction: once."""

        def change(session: Session) -> FleetState:
            row = apps.fleet_state(session)
            row.followed = known.model_copy(update={"state": state}).model_dump(mode="json")
            if problems or (are_valid and row.problems):
                row.problems = list(problems)
            if told is not None:
                history.add_event(session, self._clock(), "follow", told, actor=ACTOR, commit=known.commit)
            session.add(row)
            return row

        self._leases.write(leadership, change)


def _would(known: Followed, plan: views.PlanView) -> str:
    changes = [change for change in plan.changes if change.action not in ("none", "absent")]
    if not changes:
        return f"{known.words} changes nothing"
    named = ", ".join(f"{change.action} {change.app}" + (" (blocked)" if change.blocked else "") for change in changes)
    return f"{known.words} waits to be applied: {named}"
