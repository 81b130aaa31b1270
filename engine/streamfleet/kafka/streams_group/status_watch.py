"""What the broker says about a group beside its tasks, and when it is too much. Called by member.py with every answer."""

from __future__ import annotations

import structlog

from streamfleet.kafka.patience import PatientClock
from streamfleet.kafka.streams_group.refusals import status_refusal
from streamfleet.kafka.streams_group.values import GroupStatus, StatusReport

log = structlog.get_logger(__name__)

_NOT_READY = frozenset(
    {
        GroupStatus.MISSING_SOURCE_TOPICS,
        GroupStatus.INCORRECTLY_PARTITIONED_TOPICS,
        GroupStatus.MISSING_INTERNAL_TOPICS,
        GroupStatus.ASSIGNMENT_DELAYED,
    }
)
_HOPELESS = frozenset({GroupStatus.STALE_TOPOLOGY, GroupStatus.INCORRECTLY_PARTITIONED_TOPICS})


class StatusWatch:
    """Some statuses pass by themselves; missing sources may, for a while; the rest ends the membership."""

    def __init__(self, group_id: str, missing_source_timeout_ms: int, clock: PatientClock) -> None:
        self._group_id = group_id
        self._missing_source_timeout_ms = missing_source_timeout_ms
        self._clock = clock
        self._reports: tuple[StatusReport, ...] = ()
        self._missing_since_ms: int | None = None

    @property
    def is_ready(self) -> bool:
        """Whether what the broker says about tasks is a plan: the empty one of a group that is not ready is none."""
        return not any(report.status in _NOT_READY for report in self._reports)

    @property
    def wants_shutdown(self) -> bool:
        return any(report.status is GroupStatus.SHUTDOWN_APPLICATION for report in self._reports)

    def note(self, reports: tuple[StatusReport, ...], *, has_plan: bool) -> None:
        """Raises GroupTopicsError if it makes no sense to go on. `has_plan`: the group was ready before."""
        if reports != self._reports:
            for report in reports:
                tell = log.info if report.status is GroupStatus.ASSIGNMENT_DELAYED else log.warning
                tell("broker reports", group=self._group_id, status=report.status.name, detail=report.detail)
        self._reports = reports
        # Where tasks have run, a missing internal topic was deleted, and the broker is about to make an empty one of its name.
        hopeless_now = _HOPELESS | {GroupStatus.MISSING_INTERNAL_TOPICS} if has_plan else _HOPELESS
        hopeless = next((report for report in reports if report.status in hopeless_now), None)
        if hopeless is not None:
            raise status_refusal(hopeless, self._group_id)
        self._note_missing(next((r for r in reports if r.status is GroupStatus.MISSING_SOURCE_TOPICS), None))

    def _note_missing(self, report: StatusReport | None) -> None:
        now_ms = self._clock.now_ms()
        if report is None:
            self._missing_since_ms = None
        elif self._missing_since_ms is None:
            self._missing_since_ms = now_ms
        elif now_ms - self._missing_since_ms >= self._missing_source_timeout_ms:
            raise status_refusal(report, self._group_id)

    def forget(self) -> None:
        self._reports, self._missing_since_ms = (), None
