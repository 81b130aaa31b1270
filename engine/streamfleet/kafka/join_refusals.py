"""What it means when the coordinator will not have a member: fatal errors that say what to change.

Called by group_member.py for every code that neither time nor a new member id can mend.
"""

from __future__ import annotations

from streamfleet.kafka.error_codes import NOT_ALLOWED, ErrorCode
from streamfleet.kafka.errors import AuthorizationError, GroupFatalError
from streamfleet.kafka.group_client import GroupSettings

_STOP_IT = (
    "stop it first, or give the app an application id of its own; a Java Kafka Streams app leaves the group at once if it is "
    "closed with CloseOptions of LEAVE_GROUP, else when its session time-out is over (45 s by default)"
)


def refusal(code: ErrorCode, settings: GroupSettings) -> GroupFatalError:
    if code in NOT_ALLOWED:
        return AuthorizationError(
            f"not allowed to be a member of group {settings.group_id} ({code.name})",
            hint="grant READ on the group with the application id",
        )
    facts = {
        ErrorCode.FENCED_INSTANCE_ID: (
            f"another process is static member {settings.group_instance_id} of group {settings.group_id}",
            "give every slot its own group.instance.id; if this one was replaced, it may just end",
        ),
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL: (
            f"group {settings.group_id} is in use by another kind of client",
            _STOP_IT,
        ),
        ErrorCode.INVALID_SESSION_TIMEOUT: (
            f"the broker does not accept a session time-out of {settings.session_timeout_ms} ms",
            "brokers accept 6 s to 30 min unless configured otherwise",
        ),
        ErrorCode.GROUP_MAX_SIZE_REACHED: (
            f"group {settings.group_id} has as many members as the broker allows",
            "raise group.max.size on the broker, or run fewer StreamThreads",
        ),
    }
    fact, hint = facts.get(code, (f"group {settings.group_id} answered {code.name}", "look at the broker's log"))
    return GroupFatalError(fact, hint=hint)
