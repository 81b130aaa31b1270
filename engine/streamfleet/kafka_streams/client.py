"""KafkaStreams: what an app's main function holds. Context manager; start, wait, look, close."""

from __future__ import annotations

import enum
import threading
from collections.abc import Callable, Collection
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec
import structlog

from streamfleet.assignment.snapshot import MemberReport, Plan
from streamfleet.changelog.listeners import StandbyUpdateListener, StateRestoreListener, UpdateListeners
from streamfleet.clock import Clock, SystemClock
from streamfleet.config import StreamsConfig
from streamfleet.errors import ApplicationShutdownError, ConfigError, StoreUnavailableError, StreamsError
from streamfleet.failpoints import Failpoints, NoFailpoints
from streamfleet.kafka_streams.driver import AfterFailure
from streamfleet.kafka_streams.states import ClientState, checked_transition
from streamfleet.kafka_streams.thread_pool import ThreadPool
from streamfleet.kafka_streams.wiring import ThreadParts, Wiring
from streamfleet.metrics import Metrics
from streamfleet.query.app_queries import AppQueries
from streamfleet.query.hosts import KeyQueryMetadata
from streamfleet.query.lags import LagInfo
from streamfleet.query.request import StateQueryRequest
from streamfleet.query.results import StateQueryResult
from streamfleet.query.store_catalogue import KeyPartitioner
from streamfleet.serdes.api import Serde
from streamfleet.state.process_id import load_process_id
from streamfleet.state.state_directory import StateDirectory
from streamfleet.thread.global_updater import GlobalUpdater
from streamfleet.thread.source_watch import SourceWatch
from streamfleet.thread.stream_thread import StreamThread
from streamfleet.thread.task_factory import TaskFactory
from streamfleet.thread.thread_status import ThreadStatus
from streamfleet.topology.topology import Topology

log = structlog.get_logger(__name__)

CLEANING_INTERVAL_MS = 60_000
_STARTED = frozenset({ClientState.REBALANCING, ClientState.RUNNING})

R = TypeVar("R")

StateListener = Callable[[ClientState, ClientState], None]
"""listener(new state, old state)"""


class UncaughtResponse(enum.Enum):
    REPLACE_THREAD = "replace_thread"
    """A new StreamThread begins at the last commit. An error that comes back makes this a loop: count them in the handler."""
    SHUTDOWN_CLIENT = "shutdown_client"
    """The app ends, in this process; others of its group go on."""
    SHUTDOWN_APPLICATION = "shutdown_application"
    """The app ends in all processes of its group."""


UncaughtHandler = Callable[[Exception], UncaughtResponse]


class KafkaStreams:
    """Runs a topology on a cluster, until `close()` or until a thread fails."""

    def __init__(
        self,
        topology: Topology,
        config: StreamsConfig | None = None,
        *,
        clock: Clock | None = None,
        failpoints: Failpoints | None = None,
    ) -> None:
        chosen = config or topology.config
        if chosen is None:
            raise ConfigError(
                "the app has no configuration", hint="pass a StreamsConfig with application_id and brokers"
            )
        self._topology = topology
        self._config = chosen
        self._clock = clock or SystemClock()
        self._failpoints = failpoints or NoFailpoints()
        self._metrics = Metrics()
        self._listeners = UpdateListeners()
        self._directory = StateDirectory(chosen.state_dir, chosen.application_id)
        self._wiring: Wiring | None = None
        self._globals: GlobalUpdater | None = None
        self._watch: SourceWatch | None = None
        self._next_cleaning_ms = 0
        self._factory: TaskFactory | None = None
        self._queries: AppQueries | None = None
        self._threads = ThreadPool(self._make_thread, self._on_step, self._on_failure)
        self._uncaught: UncaughtHandler = lambda _: UncaughtResponse(chosen.uncaught_exception_handler)
        self._state = ClientState.CREATED
        self._changed = threading.Condition()
        self._listener: StateListener | None = None
        self.failure: Exception | None = None
        """What ended the app, if it ended by itself."""

    @property
    def state(self) -> ClientState:
        return self._state

    @property
    def waits_for_broker(self) -> str | None:
        """While the app starts: what the cluster was asked and has not answered yet."""
        return None if self._wiring is None else self._wiring.waits_for_broker

    def set_state_listener(self, listener: StateListener) -> None:
        """Be told of every change of state, by the thread that makes it."""
        self._listener = listener

    def set_state_restore_listener(self, listener: StateRestoreListener) -> None:
        """Be told how stores are restored; before `start`."""
        self._require_created()
        self._listeners.restore = listener

    def set_standby_update_listener(self, listener: StandbyUpdateListener) -> None:
        """Be told how copies of state are kept up to date; before `start`."""
        self._require_created()
        self._listeners.standby = listener

    def _require_created(self) -> None:
        if self._state is not ClientState.CREATED:
            raise StreamsError(f"the app is {self._state.value}", hint="set listeners before it is started")

    def metrics(self) -> Metrics:
        return self._metrics

    @property
    def config(self) -> StreamsConfig:
        return self._config

    def threads(self) -> list[ThreadStatus]:
        """What each StreamThread told about itself lately."""
        threads = [driver.thread for driver in self._threads.drivers]
        # The phase is told as it is now: a thread that stops writes no status any more.
        return [msgspec.structs.replace(thread.status, phase=thread.phase.value) for thread in threads]

    def start(self) -> None:
        """Check the topics, create the internal ones, join the group; returns before any task runs."""
        if self._state is not ClientState.CREATED:
            raise StreamsError(f"the app was started already, it is {self._state.value}")
        self._directory.lock()
        try:
            self._drop_outdated_state()
            process_id = load_process_id(self._directory.path)
            self._wiring = Wiring(
                self._topology,
                self._config,
                self._directory,
                process_id,
                self._clock,
                self._metrics,
                self._failpoints,
                self._listeners,
            )
            self._globals = self._wiring.global_updater()
            if self._globals is not None:
                self._globals.bootstrap()
            self._factory = self._wiring.task_factory({} if self._globals is None else self._globals.stores)
            self._queries = self._make_queries(self._wiring, self._factory)
            self._watch = self._wiring.source_watch()
            self._threads.prepare(self._config.num_stream_threads)
            self._transition_to(ClientState.REBALANCING)  # refused if it was closed meanwhile
        except BaseException as error:
            self._metrics.record_failure(error)
            self._release()
            raise
        self._threads.start()

    def _make_thread(self, number: int) -> ThreadParts:
        if self._wiring is None or self._factory is None:
            raise StreamsError("the app is not running", hint="start it first")
        return self._wiring.thread(number, self._factory, self._before_step if number == 0 else None)

    def _before_step(self) -> None:
        """What one thread does for all: look after the input topics and keep the global stores up to date."""
        if self._watch is not None:
            self._watch.run_once()
        if self._globals is not None:
            self._globals.run_once()

    def add_stream_thread(self) -> int:
        """Run one more StreamThread; returns its number. Python runs one at a time: more processes scale, threads hardly do."""
        self._require_started()
        return self._threads.add()

    def remove_stream_thread(self, timeout_seconds: float = 30.0) -> int:
        """Stop one StreamThread; the others, here or elsewhere, take its tasks over."""
        self._require_started()
        number = self._threads.remove(timeout_seconds)
        if self._wiring is not None:
            self._wiring.forget_thread(number)
        return number

    def pause(self) -> None:
        """Process nothing more and restore nothing more, copies included, until `resume`; the group keeps its members and they
        keep their tasks.
        """
        self._threads.pause(True)

    def resume(self) -> None:
        self._threads.pause(False)

    @property
    def is_paused(self) -> bool:
        return self._threads.is_paused

    @property
    def restore_rate_bytes_per_second(self) -> int:
        """The limit in force; 0: none."""
        wiring = self._wiring
        return (
            self._config.restore_rate_limit_bytes_per_second if wiring is None else wiring.restore_rate.bytes_per_second
        )

    def set_restore_rate(self, bytes_per_second: int) -> None:
        """Limit what all threads of this process read from changelogs together; 0: no limit. See
        `restore.rate.limit.bytes.per.second`.
        """
        if bytes_per_second < 0:
            raise ConfigError(
                f"a restore rate cannot be {bytes_per_second}", hint="give bytes per second; 0 is no limit"
            )
        self._require_started()
        if self._wiring is not None:
            self._wiring.restore_rate.change(bytes_per_second)

    def probe(self) -> None:
        """Ask the group for a rebalance now, so that tasks whose warm-ups are ready can move."""
        self._require_started()
        if self._config.group_protocol == "streams":
            raise StreamsError(
                "nobody can be asked for a rebalance: the broker plans for this group",
                hint="with group.protocol=streams there are no warm-ups, and the broker moves tasks by itself",
            )
        for driver in self._threads.drivers[:1]:
            driver.thread.probe()

    def set_uncaught_exception_handler(self, handler: UncaughtHandler) -> None:
        """Decide what a failed StreamThread means: another one in its place, the end of the app here, or everywhere. Without it
        `uncaught.exception.handler` does.
        """
        self._uncaught = handler

    def _require_started(self) -> None:
        if self._state not in _STARTED:
            raise StreamsError(f"the app is {self._state.value}", hint="threads come and go only while it runs")

    # queries

    def advertise(self, endpoint: str) -> None:
        """Tell the group where this process answers queries, as host:port, if `application.server` does not; before `start`."""
        if self._state is ClientState.CREATED and self._config.application_server is None:
            self._config = self._config.with_(application_server=endpoint)

    def query(self, request: StateQueryRequest[R]) -> StateQueryResult[R]:
        """Read the partitions of a store that are in this process. May be called by any thread."""
        return self.queries.run(request)

    def query_metadata_for_key(
        self,
        store: str,
        key: Any,
        key_serde: Serde[Any] | None = None,
        partitioner: KeyPartitioner | None = None,
    ) -> KeyQueryMetadata:
        """Which partition a key is in, and which processes of the group have it: those that told their `application.server`."""
        return self.queries.metadata_for_key(store, key, key_serde, partitioner)

    def local_store_lags(self) -> dict[str, dict[int, LagInfo]]:
        """How far the stores here are behind their changelogs, by store and partition; asks the broker."""
        return self.queries.local_store_lags()

    @property
    def queries(self) -> AppQueries:
        """Raises StoreUnavailableError unless the app runs."""
        queries = self._queries
        if queries is None or self._state not in _STARTED:
            raise StoreUnavailableError(f"the app is {self._state.value}", hint="ask while it runs")
        return queries

    def _make_queries(self, wiring: Wiring, factory: TaskFactory) -> AppQueries:
        global_stores = None if self._globals is None else self._globals.committed_stores
        return AppQueries(factory, self._config, self._stream_threads, wiring.admin, global_stores)

    def _stream_threads(self) -> list[StreamThread[MemberReport, Plan]]:
        return [driver.thread for driver in self._threads.drivers]

    # life cycle

    def wait_until_running(self, timeout_seconds: float = 60.0) -> None:
        """Wait until all tasks of this process run; raises what ended the app, or TimeoutError."""
        with self._changed:
            self._changed.wait_for(lambda: self._state is ClientState.RUNNING or self._state.is_over, timeout_seconds)
        if self.failure is not None:
            raise self.failure
        if self._state is not ClientState.RUNNING:
            raise TimeoutError(f"the app is {self._state.value} after {timeout_seconds:g} s")

    def close(self, timeout_seconds: float = 30.0, *, leave_group: bool = False) -> bool:
        """Commit, close the tasks, leave the group. False if a thread did not stop in time: the state stays PENDING_SHUTDOWN, and
        `close` may be called again. `failure`, and the state ERROR, tell of one that could not be closed. Static members keep their
        place in the group, so that a restart finds its tasks; with `leave_group` they give it up, and others take the tasks over at
        once. Called by code that the app runs (a listener, a processor) it begins the end, and cannot wait for it.
        """
        if self._transition_to(ClientState.NOT_RUNNING, only_from={ClientState.CREATED}):
            return True
        self._transition_to(ClientState.PENDING_SHUTDOWN, only_from=_STARTED)
        self._threads.stop(leave_group=leave_group)
        stopped = self._threads.join(timeout_seconds)
        if stopped:
            self._release_in_the_end()
        for failure in [driver.close_failure for driver in self._threads.drivers if driver.close_failure is not None]:
            self._end(failure)
        if stopped:
            self._transition_to(ClientState.NOT_RUNNING, only_from={ClientState.PENDING_SHUTDOWN})
        self._transition_to(ClientState.ERROR, only_from={ClientState.PENDING_ERROR})
        return stopped

    def clean_up(self) -> None:
        """Delete the app's local state; only while it is not running. It will be restored from the changelogs."""
        if self._state not in (ClientState.CREATED, ClientState.NOT_RUNNING, ClientState.ERROR):
            raise StreamsError(
                f"local state cannot be deleted while the app is {self._state.value}", hint="close it first"
            )
        self._directory.lock()
        try:
            self._directory.wipe()
        finally:
            self._directory.unlock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()

    def _on_step(self) -> None:
        """Called by every stream thread after each step."""
        self._clean_state()
        if self._threads.all_running:
            self._transition_to(ClientState.RUNNING, only_from={ClientState.REBALANCING})
        else:
            self._transition_to(ClientState.REBALANCING, only_from={ClientState.RUNNING})

    def _clean_state(self) -> None:
        """Now and then, delete the state of tasks that have gone elsewhere."""
        now_ms = self._clock.monotonic_ms()
        if now_ms < self._next_cleaning_ms or not self._threads.all_running:
            return
        self._next_cleaning_ms = now_ms + CLEANING_INTERVAL_MS
        keep = {path for driver in self._threads.drivers for path in driver.thread.tasks.directories()}
        deleted = self._directory.clean(keep, self._config.state_cleanup_delay_ms, self._clock.now_ms())
        if deleted and self._factory is not None:
            for name in deleted:
                content_id, _, partition = name.rpartition("_")
                if partition.isdigit():  # not what was set aside
                    self._factory.inventory.forget((content_id, int(partition)))
            log.info("local state of tasks that are elsewhere was deleted", tasks=deleted)

    def _drop_outdated_state(self) -> None:
        """A changelog remembers for a while only what was deleted. Older state would keep what is gone there."""
        max_age_ms = self._config.state_cleanup_dir_max_age_ms
        if max_age_ms < 0:
            return
        deleted = self._directory.drop_outdated(max_age_ms, self._clock.now_ms())
        if deleted:
            log.warning(
                "local state was not used for too long, it is deleted and restored",
                tasks=deleted,
                max_age_ms=max_age_ms,
            )

    def _on_failure(self, number: int, error: Exception) -> AfterFailure:
        """A thread has failed. Unless the handler wants another one, so has the app: the rest going on alone would hide it."""
        if isinstance(error, ApplicationShutdownError):
            return AfterFailure(lambda: self._end(error))
        self._metrics.record_failure(error)
        response = self._response_to(error)
        if response is UncaughtResponse.REPLACE_THREAD and self._state in _STARTED:
            return AfterFailure(lambda: self._replace(number, error))
        tells_group = response is UncaughtResponse.SHUTDOWN_APPLICATION
        return AfterFailure(lambda: self._end(error), shuts_down_application=tells_group)

    def _replace(self, number: int, error: Exception) -> None:
        """Unless the app has begun to end meanwhile: then the failure is the end it would have been. So is another one now."""
        try:
            if self._threads.replace(number):
                log.warning("stream thread is replaced", thread=number)
                return
        except Exception as failure:
            log.exception("stream thread could not be replaced", thread=number)
            error = failure
        self._end(error)

    def _response_to(self, error: Exception) -> UncaughtResponse:
        try:
            return self._uncaught(error)
        except BaseException:  # sys.exit() as well: it would end this thread alone, and leave the rest running
            log.exception("the uncaught exception handler raised; the app is shut down")
            return UncaughtResponse.SHUTDOWN_CLIENT

    def _end(self, error: Exception) -> None:
        """One thread is gone for good: stop the others."""
        self.failure = self.failure or error
        try:
            self._transition_to(ClientState.PENDING_ERROR, only_from={*_STARTED, ClientState.PENDING_SHUTDOWN})
        finally:  # whatever the listener makes of it
            self._threads.stop()
        self._transition_to(ClientState.ERROR)

    def _transition_to(self, state: ClientState, *, only_from: Collection[ClientState] = ()) -> bool:
        """Whether it was another state before. `only_from`: from any other it stays as it is, however it came to that meanwhile."""
        with self._changed:
            if state is self._state or (only_from and self._state not in only_from):
                return False
            before, self._state = self._state, checked_transition(self._state, state)
            self._changed.notify_all()
        log.info("state changed", application=self._config.application_id, state=state.value, before=before.value)
        if self._listener is not None:
            self._listener(state, before)
        return True

    def _release_in_the_end(self) -> None:
        try:
            self._release()
        except Exception as error:
            log.exception("global stores could not be closed", application=self._config.application_id)
            self._end(error)

    def _release(self) -> None:
        """Processors of global stores are code of the app, and may fail to close: nothing else is held for that."""
        global_updater, self._globals = self._globals, None
        wiring, self._wiring = self._wiring, None
        try:
            if global_updater is not None:
                global_updater.close()
        finally:
            if wiring is not None:
                wiring.close()
            self._directory.unlock()
