"""Reset: an app forgets everything and begins again, somewhere in its input topics (start_positions.py).

    planned    what would be done, from the app's record and the cluster; changes nothing
    performed  group deleted -> internal topics deleted -> local state deleted -> offsets of the input topics set

Only while the group is empty. Every step may be done twice, and a reset that was killed is marked as pending in the
app's record, with the offsets that it has deleted: the app does not run in this state directory until the reset was done
again. Output topics are not touched, nor is local state on other machines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

import msgspec

from streamfleet.config import StreamsConfig
from streamfleet.errors import StreamsError
from streamfleet.ids import TopicPartition
from streamfleet.kafka.group_admin import GroupMembers
from streamfleet.ports import Admin
from streamfleet.state.state_directory import StateDirectory
from streamfleet.topology.topology import Topology
from streamfleet.worker.app_record import AppRecord, AppRecordFile, record_of
from streamfleet.worker.start_positions import Inputs, StartPosition

Tell = Callable[[str], None]


class GroupAdmin(Protocol):
    """See kafka/group_admin.py."""

    def members(self, group: str) -> GroupMembers: ...

    def committed(self, group: str, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]: ...

    def delete(self, group: str) -> bool: ...

    def set_offsets(self, group: str, offsets: dict[TopicPartition, int]) -> None: ...


class ResetRefusedError(StreamsError):
    """The app cannot be reset now; nothing was changed."""


class ResetPlan(msgspec.Struct, frozen=True):
    application_id: str
    start_at: str
    offsets: dict[TopicPartition, int]
    """Where the app will begin in its input topics."""
    committed: tuple[tuple[str, int, int], ...]
    """What the offsets were counted from, if they were: a reset that is cut short has deleted it."""
    internal_topics: tuple[str, ...]
    """Those that are there now."""
    state_directory: str
    missing_inputs: tuple[str, ...]
    group: GroupMembers

    def lines(self) -> Iterator[str]:
        """The plan for people."""
        yield f"reset of app {self.application_id}:"
        for topic in sorted({partition.topic for partition in self.offsets}):
            shown = ", ".join(f"{p.partition}: {at}" for p, at in sorted(self.offsets.items()) if p.topic == topic)
            yield f"  input topic {topic}: begin at {self.start_at} (partition: offset {shown})"
        for topic in self.missing_inputs:
            yield f"  input topic {topic}: does not exist, left out"
        for topic in self.internal_topics:
            yield f"  internal topic {topic}: delete"
        if not self.internal_topics:
            yield "  internal topics: none to delete"
        yield f"  local state in {self.state_directory}: delete"
        yield "  output topics, and local state on other machines: not touched"
        if not self.group.is_empty:
            yield f"  not possible now: the group is {self.group.state}, with {', '.join(self.group.members) or 'members'}"


class Reset:
    """`topology` may be left out where the app has run in this state directory before."""

    def __init__(
        self, config: StreamsConfig, admin: Admin, groups: GroupAdmin, topology: Topology | None = None
    ) -> None:
        self._config = config
        self._admin = admin
        self._groups = groups
        self._directory = StateDirectory(config.state_dir, config.application_id)
        self._file = AppRecordFile(self._directory.path)
        self._record = self._known(topology)

    def _known(self, topology: Topology | None) -> AppRecord:
        app = self._config.application_id
        recorded = self._file.load()
        given = None if topology is None else record_of(topology, app, self._config.store_epochs)
        if recorded is None and given is None:
            raise ResetRefusedError(
                f"app {app} has not run with state directory {self._directory.path}, so its internal topics are not known",
                hint="name its topology as MODULE:FUNCTION, or the state directory it ran with by --state-dir",
            )
        if recorded is None or given is None:
            return recorded or given  # type: ignore[return-value]  # one of the two is there
        return recorded.including(given)

    def plan(self, start_at: StartPosition) -> ResetPlan:
        found = self._admin.describe_topics(self._input_topics())
        partitions = [TopicPartition(name, number) for name, info in found.items() for number in range(info.partitions)]
        committed = self._committed(partitions) if start_at.counts_from_committed else {}
        return ResetPlan(
            application_id=self._config.application_id,
            start_at=str(start_at),
            offsets=start_at.offsets(Inputs(partitions, self._admin, lambda: committed)),
            committed=tuple((each.topic, each.partition, offset) for each, offset in sorted(committed.items())),
            internal_topics=tuple(sorted(self._admin.describe_topics(self._record.internal_topics))),
            state_directory=str(self._directory.path),
            missing_inputs=tuple(sorted(set(self._record.input_topics) - found.keys())),
            group=self._groups.members(self._config.application_id),
        )

    def _committed(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Now, or before a reset that was cut short."""
        if self._record.is_reset_pending and self._record.committed_before_reset:
            return {TopicPartition(topic, n): offset for topic, n, offset in self._record.committed_before_reset}
        return self._groups.committed(self._config.application_id, partitions)

    def _input_topics(self) -> set[str]:
        patterns = [re.compile(pattern) for pattern in self._record.input_patterns]
        if not patterns:
            return set(self._record.input_topics)
        names = self._admin.topic_names() - set(self._record.internal_topics)
        matching = {n for n in names if not n.startswith("__") and any(pattern.fullmatch(n) for pattern in patterns)}
        return matching | set(self._record.input_topics)

    def perform(self, plan: ResetPlan, tell: Tell) -> None:
        if not plan.group.is_empty:
            raise ResetRefusedError(
                f"app {plan.application_id} cannot be reset while its group is {plan.group.state}, with "
                f"{', '.join(plan.group.members) or 'members'}",
                hint="stop all its workers; a static member counts until session.timeout.ms after its end",
            )
        with self._marked(plan.committed):
            # First, because the broker refuses it if a worker has come back meanwhile: then nothing was changed yet.
            self._groups.delete(plan.application_id)
            tell("group deleted, with all its offsets")
            for topic in sorted(self._admin.delete_topics(plan.internal_topics)):
                tell(f"internal topic {topic} deleted")
            self._directory.wipe()
            tell(f"local state in {plan.state_directory} deleted")
            self._groups.set_offsets(plan.application_id, plan.offsets)
            tell(f"offsets of {len(plan.offsets)} input partitions set to {plan.start_at}")

    @contextmanager
    def _marked(self, committed: tuple[tuple[str, int, int], ...]) -> Iterator[None]:
        """Holds the state directory, and says in the record that a reset is pending until the block has succeeded."""
        self._directory.lock()
        try:
            kept = committed or self._record.committed_before_reset
            self._file.save(msgspec.structs.replace(self._record, is_reset_pending=True, committed_before_reset=kept))
            yield
            self._file.save(msgspec.structs.replace(self._record, is_reset_pending=False, committed_before_reset=()))
        finally:
            self._directory.unlock()
