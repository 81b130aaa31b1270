"""StateQueryRequest: a query, the store it is for, and what the answer must be like."""

from __future__ import annotations

import enum
from collections.abc import Collection
from typing import Generic, TypeVar

import msgspec

from streamfleet.errors import OptionError
from streamfleet.query.position import Position
from streamfleet.query.queries import Query

R = TypeVar("R")

DEFAULT_TIMEOUT_MS = 2_000


class IsolationLevel(enum.Enum):
    READ_UNCOMMITTED = "read_uncommitted"
    """What the task sees now: also what a crash would take back, or do again."""
    READ_COMMITTED = "read_committed"
    """What was committed last."""


class StateQueryRequest(msgspec.Struct, Generic[R], frozen=True):
    """Without `partitions`, all that this process has are asked. `require_active`: no standby and no task that still restores
    may answer. `position_bound`: an answer must be at least that fresh. `isolation` None: as the app is configured. `limit`: at
    most that many rows of each partition. `max_scanned`: how many may be looked at for them.
    `timeout_ms`: how long to wait for a busy stream thread. `execution_info`: results say who answered, and how long it took.
    """

    store: str
    query: Query[R]
    partitions: Collection[int] | None = None
    require_active: bool = False
    position_bound: Position = msgspec.field(default_factory=Position)
    isolation: IsolationLevel | None = None
    limit: int | None = None
    max_scanned: int | None = None
    timeout_ms: int = DEFAULT_TIMEOUT_MS
    execution_info: bool = False

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise OptionError(
                f"the limit of a query of store {self.store} is {self.limit}", hint="ask for at least 1 row"
            )
