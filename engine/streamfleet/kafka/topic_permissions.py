"""What the app must be allowed to do with its topics, asked of the broker before anything is read or written.

Called when an app starts, once all topics are there. Without it a missing right shows late and badly: a read that is refused looks
like a topic without records, and a refused changelog record takes others of its transaction with it, which are then blamed.
A broker without ACLs allows everything; one that does not tell is believed to.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from streamfleet.kafka.client_errors import AccessDeniedError
from streamfleet.kafka.patience import MonotonicClock, PatientClock

READ = frozenset({"READ"})
WRITE = frozenset({"WRITE"})
SETTLING_MS = 500
"""Brokers take a moment to go by a new ACL: so long a right that is missing is asked for again."""
_PAUSE_MS = 50


class PermissionAdmin(Protocol):
    """See admin.py."""

    def allowed_operations(self, names: frozenset[str]) -> Mapping[str, frozenset[str]]: ...


def check_permissions(
    admin: PermissionAdmin, needed: Mapping[str, frozenset[str]], clock: PatientClock | None = None
) -> None:
    """`needed` are operations by topic. AccessDeniedError names all that are missing; topics that are not there are left out."""
    clock = clock or MonotonicClock()
    deadline_ms = clock.now_ms() + SETTLING_MS
    while missing := _missing(admin.allowed_operations(frozenset(needed)), needed):
        if clock.now_ms() >= deadline_ms:
            raise AccessDeniedError(
                f"not allowed to {', '.join(missing)} (TOPIC_AUTHORIZATION_FAILED)",
                code="TOPIC_AUTHORIZATION_FAILED",
                hint="grant these operations to the user of this app, and start it again",
            )
        clock.pause_ms(_PAUSE_MS)


def _missing(allowed: Mapping[str, frozenset[str]], needed: Mapping[str, frozenset[str]]) -> list[str]:
    return [
        f"{operation} topic {name}"
        for name in sorted(needed)
        if allowed.get(name)
        for operation in sorted(needed[name] - allowed[name])
    ]
