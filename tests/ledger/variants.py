"""How the app and the broker of a run differ from the plain ones: standbys, and who plans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tests.ledger.nemesis import KINDS, KINDS_WITH_COPIES, Kind
from tests.ledger.worker import SESSION_TIMEOUT_MS

Protocol = Literal["classic", "streams"]
PROBING_MS = 60_000
"""The shortest there is."""


@dataclass(frozen=True)
class Variant:
    standbys: int = 0
    """Copies of each task; with them, tasks move only where their state is complete: warm-ups come first, and probing."""
    protocol: Protocol = "classic"

    @property
    def worker_options(self) -> list[str]:
        settings = {"group.protocol": self.protocol, "num.standby.replicas": self.standbys}
        if self.standbys and self.protocol == "classic":
            settings |= {"acceptable.recovery.lag": 0, "probing.rebalance.interval.ms": PROBING_MS}
        return [argument for name, value in settings.items() for argument in ("--setting", f"{name}={value}")]

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Of faults to draw, unless others are asked for. A group that the broker plans cannot be probed."""
        return KINDS_WITH_COPIES if self.standbys and self.protocol == "classic" else KINDS

    @property
    def broker_settings(self) -> dict[str, str]:
        """Of a group that the broker plans, session and heartbeats are the broker's business."""
        if self.protocol == "classic":
            return {}
        return {
            "group.streams.min.session.timeout.ms": str(SESSION_TIMEOUT_MS),
            "group.streams.session.timeout.ms": str(SESSION_TIMEOUT_MS),
            "group.streams.min.heartbeat.interval.ms": "300",
            "group.streams.heartbeat.interval.ms": "300",
        }

    def __str__(self) -> str:
        copies = f"{self.standbys} standby{'s' if self.standbys > 1 else ''} per task, " if self.standbys else ""
        return f"{copies}group.protocol={self.protocol}"


PLAIN = Variant()
