"""What a query answers: one QueryResult per partition, a value with its position or the reason why there is none."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import msgspec

from streamfleet.errors import StoreUnavailableError
from streamfleet.query.position import Position

R = TypeVar("R")


class FailureReason(enum.Enum):
    UNKNOWN_QUERY_TYPE = "unknown_query_type"
    """This kind of store cannot answer this kind of query."""
    NOT_ACTIVE = "not_active"
    """The partition is here as a standby, or still restores, or may be somebody else's by now; the request wants the owner."""
    NOT_UP_TO_BOUND = "not_up_to_bound"
    """The state is older than the request wants it, or nobody knows how old it is."""
    NOT_PRESENT = "not_present"
    """The partition is not here (any more), or as a copy that does not know yet how late it is."""
    DOES_NOT_EXIST = "does_not_exist"
    """The store has no such partition."""
    STORE_EXCEPTION = "store_exception"
    """Reading failed."""
    STORE_DAMAGED = "store_damaged"
    """The files of the store are damaged. Its task is told: a store with a changelog is wiped, restored, and can be asked again."""


class QueryResult(msgspec.Struct, Generic[R], frozen=True):
    """`is_active`: read, or refused, by the partition's only owner. Else the state may be late: by `lag_records` changelog records
    as far as they are known here, and `as_of_ms` is the timestamp of the last one that is in the state, None if none was read since
    the copy was opened. Of a task that ran here, and may have another owner by now, both are None.
    """

    value: R | None = None
    failure: FailureReason | None = None
    message: str = ""
    position: Position = msgspec.field(default_factory=Position)
    is_active: bool = False
    lag_records: int | None = None
    as_of_ms: int | None = None
    is_complete: bool = True
    """False: the limit was reached, and there is more."""
    execution_info: tuple[str, ...] = ()
    """If it was asked for: what was done and how long it took, the innermost first."""

    @property
    def is_success(self) -> bool:
        return self.failure is None

    @property
    def result(self) -> R:
        """The value; raises StoreUnavailableError if there is none because the query failed."""
        if self.failure is not None:
            raise StoreUnavailableError(f"the query failed, {self.failure.value}: {self.message}")
        value: Any = self.value
        return value  # type: ignore[no-any-return]

    @classmethod
    def failed(cls, reason: FailureReason, message: str, position: Position | None = None) -> QueryResult[R]:
        return cls(failure=reason, message=message, position=position or Position())


class StateQueryResult(msgspec.Struct, Generic[R], frozen=True):
    """`partitions` has what was asked; of a global store there is only `global_result`."""

    partitions: Mapping[int, QueryResult[R]] = {}
    global_result: QueryResult[R] | None = None

    @property
    def position(self) -> Position:
        """Of all results together: as a bound it makes sure that nothing older is read next time."""
        merged = Position() if self.global_result is None else self.global_result.position
        for result in self.partitions.values():
            merged = merged.merged(result.position)
        return merged

    def only(self) -> QueryResult[R] | None:
        """The one successful result that found something, for a key that lives in one partition; None if there is none."""
        found = [r for r in self._all() if r.is_success and r.value is not None and r.value != []]
        if len(found) > 1:
            raise ValueError(f"{len(found)} partitions have a result; this query has no single one")
        return found[0] if found else None

    def _all(self) -> list[QueryResult[R]]:
        return [*self.partitions.values(), *([] if self.global_result is None else [self.global_result])]
