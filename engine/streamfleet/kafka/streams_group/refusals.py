"""What it means when the broker will not have a member, or cannot plan for its group: fatal errors that say what to change.

Called by member.py for every code and status that neither time nor a new membership can mend.
"""

from __future__ import annotations

from streamfleet.kafka.error_codes import NOT_ALLOWED, ErrorCode
from streamfleet.kafka.errors import (
    AuthorizationError,
    GroupFatalError,
    GroupTopicsError,
    TopologyRefusedError,
    UnsupportedBrokerError,
)
from streamfleet.kafka.streams_group.values import GroupStatus, StatusReport

_TOPOLOGY_CODES = frozenset(
    {
        ErrorCode.STREAMS_INVALID_TOPOLOGY,
        ErrorCode.STREAMS_INVALID_TOPOLOGY_EPOCH,
        ErrorCode.STREAMS_TOPOLOGY_FENCED,
    }
)
_CLASSIC_HINT = "or set group.protocol=classic"


def refusal(code: ErrorCode, message: str | None, group_id: str) -> GroupFatalError:
    said = message or "without a reason"
    if code in NOT_ALLOWED:
        return AuthorizationError(
            f"not allowed to be a member of group {group_id} ({code.name}: {said})",
            hint="grant READ on the group with the application id, DESCRIBE on its topics and CREATE on its internal ones",
        )
    if code in _TOPOLOGY_CODES or (code is ErrorCode.INVALID_REQUEST and "opology" in said):
        return TopologyRefusedError(
            f"group {group_id} was founded with another topology, and the broker does not take a new one: {said}",
            hint="deploy a changed topology under a new application.id, or stop all workers and delete the group "
            f"with `streamfleet worker reset`, {_CLASSIC_HINT}",
        )
    if code is ErrorCode.UNSUPPORTED_VERSION:
        return UnsupportedBrokerError(
            f"the broker has no streams groups ({said})",
            hint=f"Apache Kafka 4.2 or newer with the feature streams.version=1 has them; upgrade it, {_CLASSIC_HINT}",
        )
    facts = {
        ErrorCode.GROUP_ID_NOT_FOUND: (
            f"group {group_id} is not a streams group ({said})",
            "members with group.protocol=classic, or another kind of client, are in it: stop all of them first",
        ),
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL: (
            f"group {group_id} is in use by another kind of client",
            "stop it, or give the app an application id of its own",
        ),
        ErrorCode.GROUP_MAX_SIZE_REACHED: (
            f"group {group_id} has as many members as the broker allows",
            "raise group.streams.max.size on the broker, or run fewer StreamThreads",
        ),
    }
    fact, hint = facts.get(
        code, (f"group {group_id} answered {code.name}: {said}", f"look at the broker's log, {_CLASSIC_HINT}")
    )
    return GroupFatalError(fact, hint=hint)


def status_refusal(report: StatusReport, group_id: str) -> GroupFatalError:
    """Of a group whose broker cannot go on."""
    hints = {
        GroupStatus.STALE_TOPOLOGY: "deploy the same version of the app everywhere",
        GroupStatus.MISSING_SOURCE_TOPICS: "create the topics, then start the app again",
        GroupStatus.INCORRECTLY_PARTITIONED_TOPICS: "a join needs equal counts on both sides, an internal topic that of "
        "its sub-topology: re-create the topic, or reset the app",
        GroupStatus.MISSING_INTERNAL_TOPICS: "they were deleted while the app ran, and the broker makes them anew, empty: "
        "reset the app, or restore the topics",
    }
    return GroupTopicsError(
        f"the broker cannot plan for group {group_id} ({report.status.name}): {report.detail.rstrip('.')}",
        hint=hints.get(report.status, "look at the broker's log"),
    )
