"""Who may do what: the one table of roles and ownership. The routes name an action; nothing else decides.

A token has a role and the teams (owners of apps) it acts for. viewer looks; operator runs the apps of its teams; admin does
everything. Scaling, resetting and retiring are three rows on purpose: what cannot be undone reaches less far.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from streamfleet_platform.errors import ForbiddenError


class Role(enum.IntEnum):
    """Each may what the one before may."""

    VIEWER = 1
    OPERATOR = 2
    ADMIN = 3


class Reach(enum.Enum):
    """Whose apps an action may touch. An admin's reach is never asked."""

    EVERY_APP = "every app"
    TEAMS = "apps of the token's teams"
    NAMED_TEAMS = "apps of teams that the token names; `all` is not enough"


class Action(enum.StrEnum):
    """What a call does. The kinds of operations are among them, by the same words."""

    LOOK = "look"
    QUERY = "query"
    PLAN = "plan"
    DECIDE = "decide"
    """Cancel or approve an operation; asked again as the operation's own kind, when that is known."""
    APPLY = "apply"
    AUDIT = "audit"
    DEPLOY = "deploy"
    SCALE = "scale"
    PROBE = "probe"
    START = "start"
    STOP = "stop"
    UPGRADE = "upgrade"
    BOOTSTRAP = "bootstrap"
    RESET = "reset"
    RETIRE = "retire"


class Rule(NamedTuple):
    role: Role
    reach: Reach


RULES: Mapping[Action, Rule] = {
    Action.LOOK: Rule(Role.VIEWER, Reach.EVERY_APP),
    Action.PLAN: Rule(Role.VIEWER, Reach.EVERY_APP),
    Action.DECIDE: Rule(Role.OPERATOR, Reach.EVERY_APP),
    Action.QUERY: Rule(Role.VIEWER, Reach.TEAMS),  # records are a team's data, not its app's state
    Action.APPLY: Rule(Role.OPERATOR, Reach.TEAMS),
    Action.AUDIT: Rule(Role.OPERATOR, Reach.TEAMS),
    Action.DEPLOY: Rule(Role.OPERATOR, Reach.TEAMS),
    Action.SCALE: Rule(Role.OPERATOR, Reach.TEAMS),
    Action.PROBE: Rule(Role.OPERATOR, Reach.TEAMS),
    Action.START: Rule(Role.OPERATOR, Reach.TEAMS),
    Action.STOP: Rule(Role.OPERATOR, Reach.TEAMS),
    Action.UPGRADE: Rule(Role.OPERATOR, Reach.TEAMS),
    Action.BOOTSTRAP: Rule(Role.OPERATOR, Reach.TEAMS),
    Action.RESET: Rule(Role.OPERATOR, Reach.TEAMS),  # and the app's name as confirmation
    Action.RETIRE: Rule(Role.OPERATOR, Reach.NAMED_TEAMS),  # the same; ends the app for good
}


@dataclass(frozen=True)
class Principal:
    """Who calls, as their token says."""

    name: str
    role: Role
    teams: frozenset[str] | None
    """None: all."""

    @property
    def reaches_all(self) -> bool:
        """Whether it acts for every team, those to come included."""
        return self.role is Role.ADMIN or self.teams is None

    def check(self, action: Action, owner: str | None = None) -> None:
        """ForbiddenError, unless this one may. Without an owner only the role is looked at."""
        rule = RULES[action]
        if self.role < rule.role:
            wanted = rule.role.name.lower()
            raise ForbiddenError(
                f"{self.name} is {_a(self.role)} and may not {action}", hint=f"it takes {_a(rule.role)}: ask a {wanted}"
            )
        if owner is not None and not self._reaches(rule.reach, owner):
            raise ForbiddenError(
                f"{self.name} may not {action} apps of {owner}", hint=f"ask {owner}, or an admin of the fleet"
            )

    def _reaches(self, reach: Reach, owner: str) -> bool:
        if self.role is Role.ADMIN or reach is Reach.EVERY_APP:
            return True
        if self.teams is None:
            return reach is Reach.TEAMS
        return owner in self.teams


def _a(role: Role) -> str:
    word = role.name.lower()
    return f"an {word}" if word[0] in "ao" else f"a {word}"
