"""The version of what is wanted of an app: its ETag, and what If-Match is compared with.

It changes when somebody decides something (a revision, a generation, a number of slots, an operation that begins or ends), not
when the app makes progress: a decision made on what was seen a second ago stays good.
"""

from __future__ import annotations

import hashlib

from streamfleet_platform import views
from streamfleet_platform.errors import StaleError


def app_version(app: views.AppSummary) -> str:
    operation = None if app.operation is None or app.operation.state.is_over else app.operation.id
    wanted = (app.application_id, app.generation, app.revision, app.desired, app.slots, operation)
    return f'"{hashlib.sha256(repr(wanted).encode()).hexdigest()[:32]}"'


def check_match(if_match: str | None, app: views.AppSummary) -> None:
    """StaleError if the caller looked at another version. `*` and nothing match always."""
    if if_match is None or if_match.strip() == "*":
        return
    if app_version(app) not in [given.strip() for given in if_match.split(",")]:
        raise StaleError(f"app {app.name} is not as it was when you looked", hint="look again, then decide")
