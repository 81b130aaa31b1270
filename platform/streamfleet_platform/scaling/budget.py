"""The fleet's budget of slots, shared by its apps: who has how many, and how many are left. Pure.

Called where decisions are made (reconcile/recording.py) and where what was decided begins (reconcile/reconciler.py, applying.py):
between the two others may have been faster.
"""

from __future__ import annotations

from collections.abc import Mapping


def free_slots(budget: int | None, claims: Mapping[str, int]) -> int | None:
    """That nobody has or is to get; None: there is no budget. `claims` are slots by app."""
    return None if budget is None else max(0, budget - sum(claims.values()))


def over_budget(budget: int | None, claims: Mapping[str, int], app: str, wanted: int) -> str | None:
    """Why the app may not have so many slots; None: it may. Fewer than it has is always allowed."""
    own = claims.get(app, 0)
    if budget is None or wanted <= own:
        return None
    left = budget - (sum(claims.values()) - own)
    if wanted <= left:
        return None
    return f"{wanted} slots are more than the {max(0, left)} that the fleet's budget of {budget} leaves for app {app}"
