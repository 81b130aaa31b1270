"""LocalQueries: a request on the tasks of this process. Called by KafkaStreams, from any thread.

    read_uncommitted   a running task's own view, through the gate of its StreamThread
    read_committed     what its last commit wrote, read by the thread that asks; also of tasks that still restore, and of standbys

An answer is active only if its task runs here and the group cannot have given it to somebody else. That is looked at after
reading: a process that stood still in between finds out, and says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from streamfleet.assignment.snapshot import MemberReport, Plan
from streamfleet.config import StreamsConfig
from streamfleet.errors import ScanTooLargeError, StoreDamagedError, StoreUnavailableError, TooManyQueriesError
from streamfleet.ids import TaskId, TopicPartition
from streamfleet.query.position import Position
from streamfleet.query.request import IsolationLevel, StateQueryRequest
from streamfleet.query.results import FailureReason, QueryResult, StateQueryResult
from streamfleet.query.store_catalogue import StoreCatalogue, StorePlace
from streamfleet.query.store_reader import UnknownQueryError, read
from streamfleet.state.committed_stores import CommittedStores
from streamfleet.state.task_store import QueryableStore
from streamfleet.task.phases import TaskPhase
from streamfleet.task.standby_task import StandbyTask
from streamfleet.task.stream_task import StreamTask
from streamfleet.thread.stream_thread import StreamThread

R = TypeVar("R")

Threads = Callable[[], Sequence[StreamThread[MemberReport, Plan]]]


class LocalQueries:
    """`global_stores` are those that every process has, None if there are none."""

    def __init__(
        self,
        catalogue: StoreCatalogue,
        config: StreamsConfig,
        threads: Threads,
        global_stores: CommittedStores | None,
    ) -> None:
        self._catalogue = catalogue
        self._isolation = IsolationLevel(config.query_isolation_level)
        self._threads = threads
        self._global_stores = global_stores

    def run(self, request: StateQueryRequest[R]) -> StateQueryResult[R]:
        """Raises StoreUnavailableError for a store that the app does not have, TooManyQueriesError and ScanTooLargeError."""
        place = self._catalogue.place(request.store)
        if place.sub_topology is None:
            return StateQueryResult(global_result=self._ask_global(request))
        results: dict[int, QueryResult[R]] = {}
        for partition in range(place.partitions) if request.partitions is None else sorted(set(request.partitions)):
            result = self._ask_partition(place, partition, request)
            if request.partitions is not None or result.failure is not FailureReason.NOT_PRESENT:
                results[partition] = result
        return StateQueryResult(results)

    def _ask_global(self, request: StateQueryRequest[R]) -> QueryResult[R]:
        if self._global_stores is None:
            return QueryResult.failed(FailureReason.NOT_PRESENT, "the global stores are not open")
        try:
            return replace(_read_committed(self._global_stores, request, None), is_active=True)
        except StoreDamagedError as error:
            return QueryResult.failed(FailureReason.STORE_DAMAGED, f"{error.fact}; a restart reads its topic anew")

    def _ask_partition(self, place: StorePlace, partition: int, request: StateQueryRequest[R]) -> QueryResult[R]:
        if not 0 <= partition < place.partitions:
            return QueryResult.failed(
                FailureReason.DOES_NOT_EXIST, f"store {place.name} has partitions 0 to {place.partitions - 1}"
            )
        task_id = place.task(partition)
        for thread in self._threads():
            task = thread.tasks.tasks.get(task_id) or thread.tasks.standbys.tasks.get(task_id)
            if task is None:
                continue
            try:
                if isinstance(task, StreamTask):
                    return self._ask_task(thread, place, task, request)
                return self._ask_late(thread, place, task, request)
            except StoreDamagedError as error:
                # Who reads may be the first to meet a damaged block, and processing may never come to it.
                thread.report_damage(task, error)
                return QueryResult.failed(FailureReason.STORE_DAMAGED, error.fact)
        return _not_present(task_id)

    def _ask_task(
        self,
        thread: StreamThread[MemberReport, Plan],
        place: StorePlace,
        task: StreamTask,
        request: StateQueryRequest[R],
    ) -> QueryResult[R]:
        if not _runs(task):
            return self._ask_late(thread, place, task, request)
        began_ns = time.perf_counter_ns()
        isolation = request.isolation or self._isolation
        try:
            if isolation is IsolationLevel.READ_COMMITTED:
                assert task.committed_stores is not None
                result = _read_committed(task.committed_stores, request, task.task_id.partition)
            else:
                result = thread.gate.look(
                    lambda: _read_current(thread.tasks.tasks.get(task.task_id), task.task_id, request),
                    request.timeout_ms / 1000,
                )
        except TooManyQueriesError:
            raise
        except StoreUnavailableError as error:
            return QueryResult.failed(FailureReason.NOT_PRESENT, str(error))
        if request.execution_info:
            result = _noted(result, f"task {task.task_id} runs here, {isolation.value}", began_ns)
        if _runs(task) and thread.is_surely_member:
            return replace(result, is_active=True, lag_records=0)
        if request.require_active and result.is_success:
            return _not_active(f"the group may have given task {task.task_id} to another process")
        return result

    def _ask_late(
        self,
        thread: StreamThread[MemberReport, Plan],
        place: StorePlace,
        task: StreamTask | StandbyTask,
        request: StateQueryRequest[R],
    ) -> QueryResult[R]:
        """Of a task that is behind its changelogs: as far as it has come, and how far that is."""
        began_ns = time.perf_counter_ns()
        what = f"task {task.task_id} is {task.phase.value if isinstance(task, StreamTask) else 'a copy'} here"
        if request.require_active:
            return _not_active(what)
        stores, lag = task.committed_stores, thread.tasks.lag_records(task.task_id)
        if stores is None:
            return _not_present(task.task_id)
        if lag is None:  # the StateUpdater has not begun with it, or has just ended
            return QueryResult.failed(FailureReason.NOT_PRESENT, f"{what}, and how late it is is not known yet")
        as_of_ms = stores.replayed_to_ms.get(place.changelog)
        try:
            result = _read_committed(stores, request, task.task_id.partition)
        except StoreUnavailableError as error:
            return QueryResult.failed(FailureReason.NOT_PRESENT, str(error))
        if request.execution_info:
            result = _noted(result, f"{what}, {lag} offsets behind", began_ns)
        return replace(result, lag_records=lag, as_of_ms=as_of_ms) if result.is_success else result


def _runs(task: StreamTask) -> bool:
    return task.phase is TaskPhase.RUNNING


def _read_committed(stores: CommittedStores, request: StateQueryRequest[R], partition: int | None) -> QueryResult[R]:
    """Raises StoreUnavailableError if the task was closed."""
    with stores.reading():
        return _read(stores.store(request.store), stores.position, request, partition)


def _read_current(task: StreamTask | None, task_id: TaskId, request: StateQueryRequest[R]) -> QueryResult[R]:
    """Between two steps."""
    if task is None or not _runs(task):
        return _not_present(task_id)
    store = task.stores.get(request.store)
    view = store.current_view() if isinstance(store, QueryableStore) else None
    return _read(view, task.position_of(request.store), request, task_id.partition)


def _read(
    store: QueryableStore | None,
    processed: Mapping[TopicPartition, int] | None,
    request: StateQueryRequest[R],
    partition: int | None,
) -> QueryResult[R]:
    position = Position() if processed is None else Position.of(processed)
    if store is None:
        return QueryResult.failed(
            FailureReason.UNKNOWN_QUERY_TYPE, f"store {request.store} is of a kind of its own, which knows no queries"
        )
    if request.position_bound.offsets and not position.covers(request.position_bound, partition):
        what = "" if partition is None else f"partition {partition} of "
        return QueryResult.failed(
            FailureReason.NOT_UP_TO_BOUND,
            f"{what}store {request.store} is at {dict(position.offsets)}, "
            f"not yet at {dict(request.position_bound.offsets)}",
            position,
        )
    began_ns = time.perf_counter_ns()
    try:
        if request.max_scanned is None:
            value, is_complete = read(store, request.query, request.limit)
        else:
            with store.scanning_at_most(request.max_scanned):
                value, is_complete = read(store, request.query, request.limit)
    except (ScanTooLargeError, StoreDamagedError):
        raise
    except UnknownQueryError as error:
        return QueryResult.failed(FailureReason.UNKNOWN_QUERY_TYPE, str(error), position)
    except Exception as error:
        return QueryResult.failed(FailureReason.STORE_EXCEPTION, f"{type(error).__name__}: {error}", position)
    result = QueryResult(value=value, position=position, is_complete=is_complete)
    if request.execution_info:
        return _noted(result, f"{type(request.query).__name__} of store {request.store} was read", began_ns)
    return result


def _noted(result: QueryResult[R], what: str, began_ns: int) -> QueryResult[R]:
    took_us = (time.perf_counter_ns() - began_ns) // 1000
    return replace(result, execution_info=(*result.execution_info, f"{what}: {took_us} us"))


def _not_present(task_id: TaskId) -> QueryResult[Any]:
    return QueryResult.failed(FailureReason.NOT_PRESENT, f"task {task_id} is not here")


def _not_active(why: str) -> QueryResult[Any]:
    return QueryResult.failed(FailureReason.NOT_ACTIVE, why)
