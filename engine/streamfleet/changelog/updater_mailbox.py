"""What a StateUpdater and its StreamThread leave for each other. They run on two OS threads; this is all they share.

Called by state_updater.py from both sides. A task belongs to exactly one side at any time: to the updater from the moment it claims
the task until it gives it back, restored, failed or because it was asked to; before and after that to the StreamThread. A lock is
held for a few assignments only, never over I/O.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from streamfleet.changelog.listeners import SuspendReason
from streamfleet.changelog.progress import TaskProgress, UpdateKind
from streamfleet.changelog.restorable_task import RestorableTask
from streamfleet.errors import StreamsError
from streamfleet.ids import TaskId, TopicPartition


@dataclass(frozen=True)
class Entrusted:
    """A task that the StreamThread hands over, with what it knows about it: values, so that nobody has to ask the task."""

    task: RestorableTask
    kind: UpdateKind
    positions: Mapping[TopicPartition, int | None]
    """Where to go on reading each changelog; None: at its beginning."""
    limits: Mapping[TopicPartition, int] = field(default_factory=dict)
    """How far changelogs may be read that are input topics: the committed offsets."""


class UpdaterMailbox:
    def __init__(self, wake: Callable[[], None]) -> None:
        """`wake` is called when the StreamThread wants something."""
        self._wake = wake
        self._changed = threading.Condition()
        self._new: dict[TaskId, Entrusted] = {}
        self._held: dict[TaskId, Entrusted] = {}
        self._asked_back: dict[TaskId, SuspendReason] = {}
        self._restored: list[RestorableTask] = []
        self._failed: list[tuple[RestorableTask, StreamsError]] = []
        self._limits: dict[TopicPartition, int] = {}
        self._failure: Exception | None = None
        self._is_closing = False
        self.is_paused = False
        self.progress: tuple[TaskProgress, ...] = ()
        """As of the updater's last step; replaced as a whole."""

    # --- the StreamThread's side ---

    def entrust(self, entrusted: Entrusted) -> None:
        with self._changed:
            self._new[entrusted.task.task_id] = entrusted
        self._wake()

    def ask_back(self, task_ids: Collection[TaskId], reason: SuspendReason) -> None:
        """What the updater has not claimed, or has left here, is back at once; for the rest see `wait_until_back`."""
        with self._changed:
            for task_id in task_ids:
                self._new.pop(task_id, None)
            self._restored = [task for task in self._restored if task.task_id not in task_ids]
            self._failed = [(task, error) for task, error in self._failed if task.task_id not in task_ids]
            self._asked_back |= dict.fromkeys(self._held.keys() & task_ids, reason)
        self._wake()

    def wait_until_back(self, task_ids: Collection[TaskId], timeout_seconds: float) -> bool:
        """False if the updater still holds one of them."""
        with self._changed:
            return self._changed.wait_for(lambda: self._held.keys().isdisjoint(task_ids), timeout_seconds)

    def take_restored(self) -> list[RestorableTask]:
        with self._changed:
            taken, self._restored = self._restored, []
            return taken

    def take_failed(self) -> tuple[RestorableTask, StreamsError] | None:
        """One at a time: what is done about it may fail, and the others must not be lost by that."""
        with self._changed:
            return self._failed.pop(0) if self._failed else None

    def set_limits(self, limits: Mapping[TopicPartition, int]) -> None:
        with self._changed:
            self._limits.update(limits)
        self._wake()

    def set_paused(self, paused: bool) -> None:
        self.is_paused = paused
        self._wake()

    def close(self) -> None:
        self._is_closing = True
        self._wake()

    @property
    def failure(self) -> Exception | None:
        """What ended the updater."""
        return self._failure

    def has_of_kind(self, *kinds: UpdateKind) -> bool:
        """Whether there is a task of these kinds that the StreamThread has not got back."""
        with self._changed:
            waiting = any(entrusted.kind in kinds for entrusted in self._new.values())
            return (
                waiting
                or any(each.kind in kinds for each in self._held.values())
                or bool(self._restored or self._failed)
            )

    def offset_sums(self) -> dict[TaskId, int]:
        """How far each task is that the StreamThread has not got back."""
        with self._changed:
            here = self._new | self._held
        began = {task_id: sum(at or 0 for at in each.positions.values()) for task_id, each in here.items()}
        return began | {each.task_id: each.offset_sum for each in self.progress if each.task_id in began}

    # --- the updater's side ---

    def new(self) -> list[Entrusted]:
        """What waits to be claimed."""
        with self._changed:
            return list(self._new.values())

    def claim(self, entrusted: Entrusted) -> bool:
        """False if it was asked back meanwhile."""
        task_id = entrusted.task.task_id
        with self._changed:
            if self._new.get(task_id) is not entrusted:
                return False
            del self._new[task_id]
            self._held[task_id] = entrusted
            return True

    def take_asked_back(self) -> dict[TaskId, SuspendReason]:
        with self._changed:
            taken, self._asked_back = self._asked_back, {}
            return taken

    def take_limits(self) -> dict[TopicPartition, int]:
        with self._changed:
            taken, self._limits = self._limits, {}
            return taken

    @property
    def is_closing(self) -> bool:
        return self._is_closing

    def give_back(self, task_id: TaskId) -> None:
        with self._changed:
            self._held.pop(task_id, None)
            self._changed.notify_all()

    def give_back_restored(self, task: RestorableTask) -> None:
        with self._changed:
            if task.task_id not in self._asked_back:
                self._restored.append(task)
            self._release(task)

    def give_back_failed(self, task: RestorableTask, error: StreamsError) -> None:
        with self._changed:
            if task.task_id not in self._asked_back:
                self._failed.append((task, error))
            self._release(task)

    def _release(self, task: RestorableTask) -> None:
        self._held.pop(task.task_id, None)
        self._asked_back.pop(task.task_id, None)
        self._changed.notify_all()

    def fail(self, failure: Exception) -> None:
        """The updater makes no more steps. What it held is the StreamThread's again."""
        with self._changed:
            self._failure = failure
            self._held.clear()
            self._changed.notify_all()
