"""What the group client raises, named by what the catcher should do next.

StreamsError
└── GroupError                      something about the group or its coordinator
    ├── TaskMigratedError           this member no longer owns its tasks: drop them uncommitted, rejoin
    ├── CommitDeferredError         a rebalance is between JoinGroup and SyncGroup: commit after the next Assigned
    ├── TransactionAbortableError   the transaction cannot be committed: abort it, the producer lives on
    ├── OffsetRejectedError         the broker refused an offset that no retry will make good
    ├── GroupTimeoutError           no answer in time: ask again (reads), or treat as unknown (writes)
    │   └── UnstableOffsetError     ... because a transaction with these offsets is still open
    └── GroupFatalError             fix something and restart
        ├── AuthenticationError     wrong credentials, mechanism or certificate
        ├── AuthorizationError      an ACL is missing
        ├── UnsupportedBrokerError  the broker does not speak the pinned versions
        ├── TopologyRefusedError    the group was founded with another topology
        ├── GroupTopicsError        the broker cannot plan for the group: topics are missing, or not what they must be
        └── MalformedGroupDataError bytes that would wedge the group were not sent, or could not be read

What is wrong with a producer, whoever finds out, is in client_errors.py: FencedProducerError, UnknownTransactionOutcomeError.
"""

from __future__ import annotations

from streamfleet.errors import StreamsError


class GroupError(StreamsError):
    """Root of what goes wrong between this process and the coordinator of its group."""


class TaskMigratedError(GroupError):
    """The broker says that this member, generation or instance is not the current one."""


class FencedInstanceError(TaskMigratedError):
    """Another member joined with the same group.instance.id."""


class CommitDeferredError(GroupError):
    """A commit now would be refused although the tasks are still ours."""


class TransactionAbortableError(GroupError):
    """Offsets could not be added to the transaction."""


class OffsetRejectedError(GroupError):
    """An offset, its metadata or its partition is not acceptable."""


class GroupTimeoutError(GroupError, TimeoutError):
    """The coordinator did not answer, or kept asking for patience, until the deadline."""


class UnstableOffsetError(GroupTimeoutError):
    """Committed offsets could not be read because a transaction that writes them did not end in time."""


class GroupFatalError(GroupError):
    """Retrying cannot help; somebody has to change something."""


class AuthenticationError(GroupFatalError):
    """The broker does not believe who we are, or we do not believe who it is."""


class AuthorizationError(GroupFatalError):
    """The broker knows who we are and does not let us."""


class UnsupportedBrokerError(GroupFatalError):
    """A message version this client is pinned to is outside the broker's range."""


class TopologyRefusedError(GroupFatalError):
    """A streams group has one topology for life, and it is not this one."""


class GroupTopicsError(GroupFatalError):
    """A streams group's topics are not what its topology needs."""


class MalformedGroupDataError(GroupFatalError):
    """Subscription or assignment bytes are not what they must be."""
