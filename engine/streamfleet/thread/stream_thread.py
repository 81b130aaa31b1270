"""StreamThread: one member of the group and its tasks. `run_once()` does one bounded step; its owner calls it in a loop.

A step: hear what the group says, let restored tasks run, poll a batch, process what is buffered, punctuate, commit if it is time.
Errors end in one of three ways: the tasks are dropped because somebody else may own them (TaskMigratedError), they go back to the
last commit (the transaction or the state was lost, the tasks were not; on a full disk, as soon as it has room again), or the step
raises and the owner decides.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from typing import Generic

import structlog

from streamfleet.clock import Clock
from streamfleet.commit.api import Commit
from streamfleet.config import StreamsConfig
from streamfleet.errors import ApplicationShutdownError, DiskFullError, StoreDamagedError, StreamsError
from streamfleet.failpoints import Failpoints
from streamfleet.kafka.client_errors import (
    BrokerUnavailableError,
    ProducerLostError,
    TransactionAbortRequiredError,
)
from streamfleet.kafka.errors import (
    CommitDeferredError,
    GroupTimeoutError,
    TaskMigratedError,
    TransactionAbortableError,
)
from streamfleet.kafka.group_events import Assigned, Event, Fatal, Lost, Rebalancing
from streamfleet.kafka.group_protocol import PlanT, ReportT
from streamfleet.kafka.membership import Membership
from streamfleet.kafka.outage import Outage
from streamfleet.kafka.read_troubles import CountStall, ReadTroubles, count_nothing
from streamfleet.metrics import ThreadCounts
from streamfleet.ports import ClientTrouble, Consumer, ConsumerEvent, OffsetOutOfRange, PartitionUnavailable
from streamfleet.task.standby_task import StandbyTask
from streamfleet.task.stream_task import StreamTask
from streamfleet.thread.disk_wait import DiskWait
from streamfleet.thread.step_gate import StepGate
from streamfleet.thread.summary import Summary
from streamfleet.thread.task_manager import TaskManager, WantedTasks
from streamfleet.thread.thread_phases import ThreadPhase, checked_transition
from streamfleet.thread.thread_status import STATUS_INTERVAL_MS, StatusWriter, ThreadStatus
from streamfleet.thread.transaction_wait import TransactionWait
from streamfleet.thread.warm_up_watch import WarmUpWatch

log = structlog.get_logger(__name__)

MAX_POLL_RECORDS = 1000
RECORDS_PER_TURN = 100
"""Taken from one task before the next has its turn."""
RESTORING_POLL_MS = 10
"""How long a step without records waits while tasks are restored: they should run as soon as they are."""
FENCE_TIMEOUT_MS = 10_000
ANNOUNCE_TIMEOUT_MS = 10_000
PLAN_TIMEOUT_MS = 5_000
"""How long a thread that is stopped in the middle of a rebalance waits for the plan: it can commit again then."""
GROUP_WAIT_MS = 20
LOST_TRANSACTION = (
    ProducerLostError,
    TransactionAbortableError,
    TransactionAbortRequiredError,
)
"""The producer or its transaction is gone, and with it what was sent; whether the tasks are still ours, the group will say."""
BROKER_AWAY = (BrokerUnavailableError, GroupTimeoutError)
PASSING = (*LOST_TRANSACTION, *BROKER_AWAY, CommitDeferredError, DiskFullError, StoreDamagedError, TaskMigratedError)


class StreamThread(Generic[ReportT, PlanT]):
    """`report(shutdown_requested)` says what this member owns now. Three functions read a plan: the tasks to have (active ones
    and copies), the transactional ids of dead owners to fence before, and whether all members are to stop.
    """

    def __init__(
        self,
        name: str,
        config: StreamsConfig,
        tasks: TaskManager,
        membership: Membership[ReportT, PlanT],
        consumer: Consumer,
        commit: Commit,
        clock: Clock,
        *,
        report: Callable[[bool], ReportT],
        tasks_of: Callable[[PlanT], WantedTasks],
        fences_of: Callable[[PlanT], Iterable[str]],
        asks_for_shutdown: Callable[[PlanT], bool],
        failpoints: Failpoints,
        counts: ThreadCounts | None = None,
        before_step: Callable[[], None] | None = None,
        count_stall: CountStall = count_nothing,
        outage: Outage | None = None,
    ) -> None:
        self.name = name
        self.phase = ThreadPhase.CREATED
        self.tasks = tasks
        self.counts = counts or ThreadCounts()
        self.status = ThreadStatus(name, self.phase.value, clock.monotonic_ms())
        """As of the last step, or a little older; may be read by any thread."""
        self._summary = Summary(name, self.counts, config.log_summary_interval_ms, clock.monotonic_ms())
        self._status_writer = StatusWriter(name, tasks, consumer, self.counts)
        self._config = config
        self._membership = membership
        self._consumer = consumer
        self._commit = commit
        self._clock = clock
        self._report = report
        self._tasks_of = tasks_of
        self._fences_of = fences_of
        self._asks_for_shutdown = asks_for_shutdown
        self._shutdown_requested = False
        self._failpoints = failpoints
        self._before_step = before_step
        self._last_commit_ms = clock.monotonic_ms()
        self.is_paused = False
        """Set by the owner: process nothing, but stay a member and commit what was processed."""
        self.leaves_for_good = False
        """Set by the owner: a static member, too, gives up its place in the group when it stops."""
        self._is_resting = False
        self.gate = StepGate()
        """Through it other threads look at the tasks."""
        self.assigned: Assigned[PlanT] | None = None
        """The plan in force; may be read by any thread."""
        self._event: Event[PlanT] | None = None
        self._must_rewind = False
        self._troubles: deque[ConsumerEvent] = deque()
        """To be dealt with."""
        self._reported_damage: deque[tuple[StreamTask | StandbyTask, StoreDamagedError]] = deque()
        """Found by other threads; to be dealt with."""
        self._read_troubles = ReadTroubles(
            "input", clock.monotonic_ms, timeout_ms=config.task_timeout_ms, count_stall=count_stall
        )
        self._warm_ups = WarmUpWatch(config)
        self._disk = DiskWait(name, tasks.has_room, clock)
        self._transactions = TransactionWait(
            clock, timeout_ms=config.task_timeout_ms, quiet_ms=config.transaction_timeout_ms
        )
        self._outage = outage or Outage()
        self._away_since_ms: int | None = None

    def start(self) -> None:
        self._transition_to(ThreadPhase.STARTING)
        self._membership.start(self._report(False))

    @property
    def is_surely_member(self) -> bool:
        """Whether nobody else can own this member's tasks; may be asked by any thread."""
        return self._membership.is_surely_member

    def probe(self) -> None:
        """Ask the group for a rebalance; may be called by any thread."""
        self._membership.enforce_rebalance("asked to probe")

    def report_damage(self, task: StreamTask | StandbyTask, error: StoreDamagedError) -> None:
        """Somebody who only reads has found a store of this task damaged; may be called by any thread."""
        self._reported_damage.append((task, error))

    def run_once(self) -> None:
        """One step. Raises what only the owner can decide about."""
        with self.gate.step():
            self._run_once()

    def _run_once(self) -> None:
        try:
            self._step()
            self._away_since_ms = None
            self._outage.answers(self)
        except TaskMigratedError as error:
            log.warning("tasks migrated", thread=self.name, reason=str(error))
            self.counts.lost_assignments += 1
            self._drop_all()
        except LOST_TRANSACTION as error:
            log.warning("transaction lost, going back to the last commit", thread=self.name, reason=str(error))
            self.counts.lost_transactions += 1
            self._go_back()
            self._transactions.begin(error)
        except StoreDamagedError as error:
            if not self.tasks.note_damage(error):
                raise
            self._go_back()
        except DiskFullError as error:
            if error.directory not in self.tasks.directories():
                raise  # a global store: nothing here could open it again
            self.counts.full_disk_waits += 1
            self._disk.begin(error)
            self.tasks.standbys.suspend()  # their databases are on the same disk
            self._go_back()
        except BROKER_AWAY as error:
            if self.tasks.is_torn:
                self._go_back()
            self._endure(error)
        self._write_status()

    def _drop_all(self) -> None:
        self._troubles.clear()
        self.tasks.drop_all()

    def _go_back(self) -> None:
        self._troubles.clear()
        self.tasks.abandon()
        self._must_rewind = True
        if self.phase is ThreadPhase.RUNNING:
            self._transition_to(ThreadPhase.ASSIGNED)

    def _endure(self, error: StreamsError) -> None:
        """The broker does not answer. A step that has torn no task can be done again, so it is, until the time-out of a task."""
        now_ms = self._clock.monotonic_ms()
        if self._away_since_ms is None:
            self._away_since_ms = now_ms
        away_ms = now_ms - self._away_since_ms
        self._outage.silent(self, f"a step of {self.name}", str(error), waited_ms=away_ms)
        if away_ms >= self._config.task_timeout_ms:
            raise error

    def _write_status(self) -> None:
        now_ms = self._clock.monotonic_ms()
        if self.status.phase != self.phase.value or now_ms - self.status.written_at_ms >= STATUS_INTERVAL_MS:
            leads = self._membership.leads_group
            self.status = self._status_writer.write(self.phase.value, now_ms, self._disk.reason, leads_group=leads)
            self._ask_for_rebalance()
            self._summary.say_if_due(now_ms, len(self.tasks.tasks))

    def _ask_for_rebalance(self) -> None:
        """When tasks could be somewhere better."""
        if self.tasks.has_lost_state:
            self.tasks.has_lost_state = False
            if self._config.num_standby_replicas > 0:
                self._membership.enforce_rebalance("state of an active task was lost, a standby may be nearer")
        if self._warm_ups.is_due(self.tasks.standbys, self._clock.monotonic_ms()):
            log.info("warm-ups have caught up", thread=self.name)
            self._membership.enforce_rebalance("warm-ups have caught up")

    def _step(self) -> None:
        self._hear_of_damage()
        self._hear_group()
        if self._before_step is not None:
            self._before_step()
        if not self._may_open():
            with self.gate.open():
                self._consumer.poll_batch(self._config.poll_ms, MAX_POLL_RECORDS)  # waits: nothing is assigned
            return
        if self._must_rewind:
            self.tasks.rewind()
            self._must_rewind = False
        self.tasks.restore()
        if self.phase is ThreadPhase.ASSIGNED and self.tasks.all_running:
            self._transition_to(ThreadPhase.RUNNING)
        if self.is_paused or self._is_full():
            self._rest()
        else:
            self._work()
        self._commit_if_due()
        self.tasks.standbys.raise_limits(self._clock.monotonic_ms())

    def _may_open(self) -> bool:
        return self._disk.is_over() and self._transactions.is_over()

    def _hear_of_damage(self) -> None:
        """As if processing had met it. A task that is not the one that was read any more was opened anew since."""
        while self._reported_damage:
            task, error = self._reported_damage[0]
            if isinstance(task, StandbyTask):
                self.tasks.restart_copy(task, error)  # asks the broker, so what is reported stays until that is done
            self._reported_damage.popleft()
            if self.tasks.tasks.get(task.task_id) is task:
                raise error

    def _is_full(self) -> bool:
        """Between agreeing to a rebalance and its plan nothing can be committed, and what is not is held in memory; a slow member
        may delay the plan for minutes.
        """
        return not self._membership.can_commit() and self._has_too_much_uncommitted()

    def _rest(self) -> None:
        """Fetch nothing more, process nothing. Waiting is left to the consumer, which has nothing to give."""
        self._consumer.pause(self._consumer.assignment())
        self._is_resting = True
        with self.gate.open():
            records = self._consumer.poll_batch(self._config.poll_ms, MAX_POLL_RECORDS)
        self.tasks.add_records(records, MAX_POLL_RECORDS)

    def _work(self) -> None:
        if self._is_resting:
            self._consumer.resume(self._consumer.assignment())
            self._is_resting = False
        with self.counts.timed("poll"):
            self._poll()
        with self.counts.timed("process"):
            self._process()
        with self.counts.timed("punctuate"):
            self._punctuate()

    # the group

    def _hear_group(self) -> None:
        """An event is kept until it is dealt with: what it asks for may have to be tried again. A later one takes its place."""
        self._event = self._membership.poll() or self._event
        if self._event is not None:
            self._on_event(self._event)
            self._event = None

    def _on_event(self, event: Event[PlanT]) -> None:
        if isinstance(event, Fatal):
            raise StreamsError(
                f"stream thread {self.name} cannot be a member of group {self._config.application_id}: {event.reason}"
            ) from event.cause
        log.info("group event", thread=self.name, what=type(event).__name__)
        if isinstance(event, Rebalancing):
            # Commit while it is still possible: from the acknowledgement on, until the next plan, it is not.
            self._commit_now()
        elif isinstance(event, Assigned):
            self._transition_to(ThreadPhase.ASSIGNED)
            if self._asks_for_shutdown(event.plan):
                raise ApplicationShutdownError(
                    f"a member of group {self._config.application_id} asked the whole application to stop",
                    hint="its own log says why",
                )
            for transactional_id in self._fences_of(event.plan):
                # A dead owner's open transaction would hide its offsets, and what follows it, until it times out.
                self._membership.fence(transactional_id, FENCE_TIMEOUT_MS)
            self.assigned = event
            self.tasks.assign(self._tasks_of(event.plan), opens=not self._must_rewind)
            self._warm_ups.on_plan()
            self.counts.rebalances += 1
        elif isinstance(event, Lost):
            self.counts.lost_assignments += 1
            self.assigned = None
            self._transition_to(ThreadPhase.ASSIGNED)
            self._drop_all()
        self._membership.acknowledge(event, self._report(self._shutdown_requested))

    # records

    def _poll(self) -> None:
        waiting = self.tasks.processable_records()
        if waiting >= MAX_POLL_RECORDS:
            return  # enough to do: see TaskManager.add_records for why reading on and pausing is worse
        is_busy = waiting > 0
        idle_ms = RESTORING_POLL_MS if self.tasks.is_restoring else self._config.poll_ms
        timeout_ms = 0 if is_busy else min(idle_ms, self._config.poll_ms)
        with self.gate.open():
            records = self._consumer.poll_batch(timeout_ms, MAX_POLL_RECORDS)
        self.counts.polls += 1
        self.counts.polled_records += len(records)
        if records:
            self.tasks.add_records(records, self._config.buffered_records_per_partition)
            self._failpoints.hit("after_poll")
        self._troubles += self._consumer.take_events()
        while self._troubles:
            self._on_trouble(self._troubles.popleft())

    def _on_trouble(self, trouble: ConsumerEvent) -> None:
        if isinstance(trouble, ClientTrouble):
            self._read_troubles.hear_client(trouble)
            return
        if isinstance(trouble, PartitionUnavailable):
            self._on_unreadable(trouble)
            return
        try:
            self._on_missing_offset(trouble)
        except BROKER_AWAY:
            self._troubles.appendleft(
                trouble
            )  # the consumer does not say it again, and gives nothing more of that partition
            raise

    def _on_unreadable(self, trouble: PartitionUnavailable) -> None:
        """Raises what cannot get better by itself, and what has lasted for the time-out of a task."""
        if trouble.partition not in self._consumer.assignment():
            return  # given up meanwhile
        position, lag = self._consumer.position(trouble.partition), self._consumer.lag_records(trouble.partition)
        self._read_troubles.hear(trouble, position, None if lag is None else position + lag)

    def _on_missing_offset(self, missing: OffsetOutOfRange) -> None:
        """A member that was paused for too long finds its input gone: the new owner has processed and purged it."""
        if self.tasks.was_processed_elsewhere(missing.partition, missing.offset):
            self._membership.enforce_rebalance("somebody else has processed what this member was to read")
            raise TaskMigratedError(
                f"{missing.partition} was processed beyond offset {missing.offset} by somebody else",
                hint="this member was away for longer than its session; it joins again",
            )
        self.tasks.go_on_behind_gap(missing.partition, missing.offset)

    def _process(self) -> None:
        processed = 0
        for task in self.tasks.running:
            processed += self.counts.timed_turn(task.task_id, partial(task.process, RECORDS_PER_TURN))
        if processed:
            self._failpoints.hit("after_process")
        self.tasks.resume_drained(self._config.buffered_records_per_partition)

    def _punctuate(self) -> None:
        for task in self.tasks.running:
            task.punctuate_stream_time()
            task.punctuate_wall_clock()

    # commit

    def _commit_if_due(self) -> None:
        running = self.tasks.running
        now_ms = self._clock.monotonic_ms()
        is_due = now_ms - self._last_commit_ms >= self._config.effective_commit_interval_ms
        if is_due:
            self.tasks.note_positions()
        if is_due or any(task.commit_requested for task in running) or self._has_too_much_uncommitted():
            self._commit_now()

    def _has_too_much_uncommitted(self) -> bool:
        return sum(t.uncommitted_bytes for t in self.tasks.running) > self._config.statestore_uncommitted_max_bytes

    def _commit_now(self) -> None:
        if not self._membership.can_commit():
            return
        try:
            committed = self._commit.commit(self.tasks.running)
        except CommitDeferredError:
            return  # a rebalance has begun meanwhile; what was prepared goes with the next commit
        if committed:
            self._transactions.end()
        self.tasks.purge(committed, self._clock.monotonic_ms())
        self._last_commit_ms = self._clock.monotonic_ms()

    # the end

    def stop(self) -> None:
        """Commit, close the tasks, leave the group. Raises, when all that is done, what would have been an error before, too."""
        if self.phase is ThreadPhase.DEAD:
            return
        self.gate.close()
        failure: StreamsError | None = None
        try:
            if self.phase is not ThreadPhase.CREATED:
                self._transition_to(ThreadPhase.STOPPING)
                failure = self._close_tasks()
        finally:
            self._close_clients()  # or the group would take this member for alive
        if failure is not None:
            raise failure

    def announce_shutdown(self) -> None:
        """Tell all members of the group to stop: the request travels with the next rebalance. Tasks are dropped first."""
        self.tasks.drop_all()
        self._shutdown_requested = True
        self._membership.enforce_rebalance("application shutdown requested")
        deadline_ms = self._clock.monotonic_ms() + ANNOUNCE_TIMEOUT_MS
        while self._clock.monotonic_ms() < deadline_ms:
            event = self._membership.poll()
            if event is None:
                self._consumer.poll_batch(GROUP_WAIT_MS, 1)
                continue
            if isinstance(event, Fatal) or (isinstance(event, Assigned) and self._asks_for_shutdown(event.plan)):
                return
            self._membership.acknowledge(event, self._report(True))
        log.error(
            "other members could not be told to stop",
            thread=self.name,
            waited_ms=ANNOUNCE_TIMEOUT_MS,
            hint="a member that does not answer holds the rebalance up; stop the others by hand",
        )

    def fail(self) -> None:
        """Close without committing: something went wrong that a commit would make permanent."""
        if self.phase is ThreadPhase.DEAD:
            return
        self.gate.close()
        if self.phase not in (ThreadPhase.CREATED, ThreadPhase.STOPPING):
            self._transition_to(ThreadPhase.STOPPING)
        try:
            self.tasks.drop_all()
        finally:
            self._close_clients()  # or the group would take this member for alive

    def _close_tasks(self) -> StreamsError | None:
        """What went wrong, but for what a running thread gets over by itself: the next owner goes on at the last commit."""
        failure: StreamsError | None = None
        try:
            if any(task.commit_needed for task in self.tasks.running):
                self._await_plan()
            if self._membership.can_commit():
                self.tasks.release(list(self.tasks.tasks))
        except StreamsError as error:
            log.warning("tasks could not be closed cleanly", thread=self.name, error=str(error))
            failure = None if isinstance(error, PASSING) else error
        self.tasks.drop_all()
        return failure

    def _await_plan(self) -> None:
        """Between agreeing to a rebalance and its plan there is no commit. Nobody else has these tasks before this member, too, has
        heard the plan and given them up, so what was done meanwhile can still be committed then.
        """
        deadline_ms = self._clock.monotonic_ms() + PLAN_TIMEOUT_MS
        while not self._membership.can_commit() and self._clock.monotonic_ms() < deadline_ms:
            event = self._membership.poll()
            if isinstance(event, Rebalancing):
                self._membership.acknowledge(event, self._report(self._shutdown_requested))
            elif isinstance(event, Lost | Fatal):
                return
            elif event is None:
                self._consumer.pause(self._consumer.assignment())
                self._consumer.poll_batch(GROUP_WAIT_MS, 1)  # waits; of what it gives nothing is processed any more

    def _close_clients(self) -> None:
        """One that cannot be closed does not keep the others open."""
        with ExitStack() as closing:
            closing.callback(self._die)
            closing.callback(self.tasks.close)
            closing.callback(self._consumer.close)
            closing.callback(self._commit.close)
            self._membership.leave("shutdown", static_too=self.leaves_for_good)

    def _die(self) -> None:
        self._outage.gives_up(self)
        self.phase = ThreadPhase.DEAD

    def _transition_to(self, phase: ThreadPhase) -> None:
        self.phase = checked_transition(self.phase, phase)
