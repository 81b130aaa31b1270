"""What a scaling decision is made from: measurements of one app at one moment, and the bounds its definition sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

import streamfleet
from streamfleet_platform.model.app_policies import Scale

Task = streamfleet.assignment.TaskKey
"""One task: the content id of its sub-topology, and a partition."""


@dataclass(frozen=True)
class TaskMeasures:
    """What one task does."""

    records_per_second: float
    """What arrives at its input topics: the change of their end offsets. Repartition topics are not counted here."""
    busy_seconds_per_record: float
    lag_records: float = 0.0
    """Over all its inputs, repartition topics included."""
    relayed_per_second: float = 0.0
    """What arrives at its repartition topics: only how it compares with its siblings is used."""
    state_bytes: int = 0
    """What has to be restored where there is no copy."""


@dataclass(frozen=True)
class SubTopologyMeasures:
    """What its tasks have in common."""

    sources: Mapping[str, int]
    """Partitions of its source and repartition topics."""
    stateful: bool
    fed_by: Mapping[str, float] = field(default_factory=dict)
    """Content ids of the sub-topologies that write its repartition topics, each with how many records it writes per record read."""


@dataclass(frozen=True)
class SlotMeasures:
    """How one worker spends its time."""

    busy_share: float
    """Processing."""
    broker_share: float = 0.0
    """Waiting for fetches while there is lag."""
    produce_share: float = 0.0
    """Waiting for acknowledgements, or for room in the producer."""


@dataclass(frozen=True)
class LastScaleUp:
    """What the last one was expected to bring, and what it brought, in records per second."""

    expected_gain: float
    measured_gain: float


@dataclass(frozen=True)
class Measures:
    """One app at one moment."""

    taken_at: datetime
    sub_topologies: Mapping[str, SubTopologyMeasures]
    tasks: Mapping[Task, TaskMeasures]
    placement: Mapping[int, frozenset[Task]]
    """Which slot, by its ordinal, runs which tasks."""
    copies: Mapping[Task, frozenset[int]] = field(default_factory=dict)
    """Slots, other than the owner's, that have a task's state and are caught up: standbys, or what is left on disk."""
    slots: Mapping[int, SlotMeasures] = field(default_factory=dict)
    stable_since: datetime | None = None
    """Since when the group is stable and nothing warms up or restores; None: it is not."""
    last_scale_up: LastScaleUp | None = None
    restore_bytes_per_second: float | None = None
    """Of one restoring task, as it was seen last; None: nothing was restored yet."""


@dataclass(frozen=True)
class Recommendation:
    """How many slots an earlier decision would have chosen."""

    at: datetime
    slots: int


@dataclass(frozen=True)
class Bounds:
    """What limits a decision."""

    scale: Scale
    """Of the app's definition."""
    slot_cpu: float = 1.0
    """How much of a CPU a slot is planned with."""
    standbys: int = 0
    free_slots: int | None = None
    """What the fleet's budget leaves; None: no budget."""
    restore_bytes_per_second: float = 50e6
    """Of one restoring task, within the fleet's restore budget."""
    max_warmups: int = 2
    handover_seconds: float = 1.0
    """In which a task that moves stands still."""
    move_seconds: float | None = None
    """How long a move takes; None: as priced."""
    horizon_seconds: float = 3600.0
    """Within which a move must bring more than it costs."""
    metrics_max_age_seconds: float = 60.0
    settle_seconds: float = 60.0
    """How long the group must be stable before anything is decided."""
