"""What was seen of an app in one pass, as operations and phases use it. Made in reconcile/ from what workers and clusters say.

A value is as old as `at`: a step that waits for the effect of something must not take an older sight for it (Work.is_fresh).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from streamfleet_platform.runtime.api import WorkerPhase, WorkerState
from streamfleet_platform.scaling.measures import Measures
from streamfleet_platform.views import TaskView

Place = tuple[str, int]
"""A topic and a partition."""


@dataclass(frozen=True)
class WorkerSeen:
    """One slot: what the runtime says of it, and what its door says."""

    state: WorkerState
    client_state: str | None = None
    """None: the door does not answer."""
    topology_hash: str | None = None
    is_ready: bool = False
    is_paused: bool = False
    is_leader: bool = False
    busy_share: float | None = None
    failure: str | None = None
    restore_rate: int = 0
    """Bytes per second that it may restore; 0: as fast as it can."""
    rebalances: int = 0
    """Plans it got, since its process began; the two below count alike."""
    processed_records: int = 0
    bad_records: int = 0
    """Left out because they could not be read or processed."""

    @property
    def is_up(self) -> bool:
        return self.state.phase is WorkerPhase.RUNNING and self.is_ready


@dataclass(frozen=True)
class InputSeen:
    """One partition that the app reads."""

    committed: int | None
    """Where a new owner would go on; None: nothing was committed yet."""
    end: int | None
    position: int | None = None
    """Where its worker is."""


@dataclass(frozen=True)
class TopicSeen:
    """One topic of the app, on its cluster."""

    partitions: int
    end_offsets: int | None = None
    """Sum over partitions."""
    drift: tuple[str, ...] = ()


@dataclass(frozen=True)
class AppSeen:
    """One app at one moment."""

    at: datetime
    workers: Mapping[int, WorkerSeen] = field(default_factory=dict)
    placement: tuple[TaskView, ...] = ()
    lag_records: int | None = None
    records_per_second: float | None = None
    inputs: Mapping[Place, InputSeen] = field(default_factory=dict)
    """Of what workers say they read."""
    topics: Mapping[str, TopicSeen] = field(default_factory=dict)
    store_bytes: Mapping[str, int] = field(default_factory=dict)
    """On disk, over all slots."""
    state: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    """Bytes of local state by slot and task, as of a look some seconds ago: a slot may have gone since."""
    largest_stores: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """The slot that holds most of a store, and how many bytes."""
    measures: Measures | None = None
    drift: tuple[str, ...] = ()
    """Of topics and group: what differs from what was recorded."""
    missing: tuple[str, ...] = ()
    """Input topics that are not there."""
    cluster_problem: str | None = None
    """Why the cluster could not be asked."""

    @property
    def restoring(self) -> list[TaskView]:
        return [task for task in self.placement if task.role == "active" and task.state == "restoring"]

    @property
    def warming(self) -> list[TaskView]:
        return [task for task in self.placement if task.role == "warmup"]

    @property
    def active(self) -> list[TaskView]:
        return [task for task in self.placement if task.role == "active"]
