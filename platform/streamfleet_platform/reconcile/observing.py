"""How the reconciler looks at the world: the port that observe/ fills, and what it is asked about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from streamfleet_platform.operations.seen import AppSeen
from streamfleet_platform.operations.work import AppRevision
from streamfleet_platform.registry.tables import App, InternalTopic
from streamfleet_platform.runtime.api import WorkerState


@dataclass(frozen=True)
class AppToSee:
    """One app, as recorded, and its workers, as the runtime lists them."""

    app: App
    revision: AppRevision
    workers: Sequence[WorkerState]
    topics: Sequence[InternalTopic]


class Observer(Protocol):
    """All apps at once, so that nobody waits for another. What cannot be seen is left out of an answer, and never raises."""

    def observe(self, apps: Sequence[AppToSee]) -> Mapping[str, AppSeen]: ...
