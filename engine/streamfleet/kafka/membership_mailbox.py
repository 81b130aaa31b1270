"""What a membership and its StreamThread leave for each other. They run on two OS threads; this is all they share.

Called by membership.py from both sides. Events go one way, in order; reports, wishes and signs of life go the other.
Nothing here waits: a lock is held for a few assignments only.

The gate for commits is here because it is opened and closed by what the StreamThread has seen, not by what the
membership knows: it opens when an Assigned is polled and closes when the StreamThread agrees to a JoinGroup. So there is
never a commit between JoinGroup and SyncGroup, and no lock is held over the network. In a group that the broker plans there is
no such moment: the gate stays open, and the epoch under which commits are made goes on (`renew`).
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic

from streamfleet.kafka.errors import TaskMigratedError
from streamfleet.kafka.group_events import Assigned, Event, Fatal, Lost
from streamfleet.kafka.group_messages import ConsumerGroupMetadata
from streamfleet.kafka.group_protocol import PlanT, ReportT
from streamfleet.kafka.patience import PatientClock
from streamfleet.kafka.tenure import Tenure


@dataclass(frozen=True)
class LeaveRequest:
    reason: str
    static_too: bool


class Mailbox(Generic[ReportT, PlanT]):
    def __init__(self, clock: PatientClock, wake: Callable[[], None], *, commits_always: bool = False) -> None:
        """`commits_always`: agreeing to an event does not end what was planned before."""
        self._clock = clock
        self._wake = wake
        self._commits_always = commits_always
        self._lock = threading.Lock()
        self._events: deque[tuple[Event[PlanT], ConsumerGroupMetadata | None]] = deque()
        self._numbers = 0
        self._awaited: int | None = None
        self._acknowledged = False
        self._report: ReportT | None = None
        self._commit_metadata: ConsumerGroupMetadata | None = None
        self._rebalance_reason: str | None = None
        self._leave: LeaveRequest | None = None
        self._refused: TaskMigratedError | None = None
        self._polled_at_ms = clock.now_ms()
        self._member_until_ms = 0
        self.tenure = Tenure()
        """By what was seen of the group when somebody last looked."""

    # --- the StreamThread's side ---

    def start(self, report: ReportT) -> None:
        with self._lock:
            self._report = report
            self._polled_at_ms = self._clock.now_ms()
        self._wake()

    def next_event(self) -> Event[PlanT] | None:
        """Also the sign of life of the StreamThread."""
        with self._lock:
            self._polled_at_ms = self._clock.now_ms()
            if not self._events:
                return None
            event, metadata = self._events.popleft()
            if isinstance(event, Assigned | Lost | Fatal):
                self._commit_metadata = metadata
            return event

    def acknowledge(self, event: Event[PlanT], report: ReportT) -> None:
        with self._lock:
            self._report = report
            if event.number == self._awaited:
                self._awaited = None
                self._acknowledged = True
                if not self._commits_always:
                    self._commit_metadata = None
        self._wake()

    @property
    def commit_metadata(self) -> ConsumerGroupMetadata | None:
        """Who to commit as; None: not now."""
        with self._lock:
            return self._commit_metadata

    def is_renewed(self, metadata: ConsumerGroupMetadata) -> bool:
        """Whether the same plan holds under another epoch by now."""
        with self._lock:
            return self._commit_metadata is not None and self._commit_metadata != metadata

    def ask_for_rebalance(self, reason: str) -> None:
        with self._lock:
            self._rebalance_reason = reason
        self._wake()

    def ask_to_leave(self, request: LeaveRequest) -> None:
        with self._lock:
            self._leave = request
        self._wake()

    def tell_refused(self, metadata: ConsumerGroupMetadata, error: TaskMigratedError) -> None:
        """A commit was refused. An error of an earlier generation is no news."""
        with self._lock:
            if metadata == self._commit_metadata:
                self._commit_metadata = None
                self._refused = error
        self._wake()

    @property
    def is_surely_member(self) -> bool:
        """Whether the group cannot have gone on without this member yet. For any thread."""
        return self._clock.now_ms() < self._member_until_ms

    # --- the membership's side ---

    def confirm(self, until_ms: int) -> None:
        """The coordinator has heard this member, and will not give it up before then."""
        self._member_until_ms = max(self._member_until_ms, until_ms)

    def keep_tasks(self, until_ms: int) -> None:
        """No sign that the group has gone on. Less certain than `confirm`: while a member waits for a rebalance it is not heard."""
        self.tenure.until_ms = max(self.tenure.until_ms, until_ms)

    def revoke(self) -> None:
        """It is no member any more, or soon none."""
        self._member_until_ms = self.tenure.until_ms = 0

    @property
    def report(self) -> ReportT | None:
        """The latest; None before start."""
        with self._lock:
            return self._report

    def post(
        self,
        make_event: Callable[[int], Event[PlanT]],
        *,
        asks: bool,
        metadata: ConsumerGroupMetadata | None = None,
    ) -> None:
        """Leave an event. `asks`: the membership goes on only when it is acknowledged."""
        with self._lock:
            self._numbers += 1
            event = make_event(self._numbers)
            if isinstance(event, Lost | Fatal):
                self._events.clear()  # plans that were not seen are void
            self._events.append((event, metadata))
            self._acknowledged = False
            self._awaited = self._numbers if asks else None

    def renew(self, metadata: ConsumerGroupMetadata) -> None:
        """Plans that were given, seen or not, hold under this epoch now."""
        with self._lock:
            if self._commit_metadata is not None:
                self._commit_metadata = metadata
            self._events = deque((event, before and metadata) for event, before in self._events)

    def take_acknowledged(self) -> bool:
        with self._lock:
            taken, self._acknowledged = self._acknowledged, False
            return taken

    def take_rebalance_reason(self) -> str | None:
        with self._lock:
            taken, self._rebalance_reason = self._rebalance_reason, None
            return taken

    def take_leave(self) -> LeaveRequest | None:
        with self._lock:
            taken, self._leave = self._leave, None
            return taken

    def take_refused(self) -> TaskMigratedError | None:
        with self._lock:
            taken, self._refused = self._refused, None
            return taken

    def silent_for_ms(self) -> int:
        """How long the StreamThread has not polled."""
        with self._lock:
            return self._clock.now_ms() - self._polled_at_ms
