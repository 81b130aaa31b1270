"""Every error the engine raises on purpose, named by what the catcher should do next.

    StreamsError
    ├── ConfigError                 a setting is wrong: fix it and restart (also a ValueError)
    ├── TopologyError               the topology cannot be built or planned: fix the program
    │   └── OptionError             a single argument of a call is wrong: fix that call (also a ValueError)
    ├── InvalidAssignmentError      an app's own TaskAssignor gave an answer that cannot be carried out: fix it
    ├── ApplicationShutdownError    a member asked the whole application to stop: stop cleanly
    ├── TaskInterruptedError        a task cannot go on, whatever its record: no error handler is asked
    │   ├── TaskCorruptedError      its local state is unusable: wipe it and restore it from its changelogs
    │   └── SerdeUnavailableError   what a serde asks (a schema registry) is away: try again later
    ├── RecordError                 one record could not be handled; a handler may answer CONTINUE
    │   ├── DeserializationError    its bytes do not fit the source's serde
    │   ├── TimestampError          its timestamp is negative or could not be extracted
    │   ├── ProcessingError         an operator or punctuator raised
    │   └── ProductionError         a result could not be sent
    │       ├── SerializationError  ... because it does not fit the sink's serde
    │       └── SinkFunctionError   ... because the sink's topic function or partitioner raised
    └── StateStoreError             a store cannot do what was asked
        ├── TaskLockedError         another StreamThread of this process still has the task's directory: try again
        ├── ScanTooLargeError       ... for so many rows: ask for fewer
        ├── ForeignStateError       the rows are not this task's, or of a newer format: give the app its own directory
        ├── StoreDamagedError       its rows cannot be read (also a TaskCorruptedError)
        ├── DiskFullError           nothing more can be written: wait for room (also a TaskInterruptedError)
        └── StoreUnavailableError   it is closed, or not known under that name: ask again later, or elsewhere
            └── TooManyQueriesError ... because others ask too: ask less often

A message says, in this order: the fact in lower case, the detail, and after a semicolon what to do.
"""

from __future__ import annotations

from pathlib import Path


class StreamsError(Exception):
    """Root of the tree: whatever the engine raises on purpose."""

    def __init__(self, fact: str, *, hint: str | None = None) -> None:
        super().__init__(fact if hint is None else f"{fact}; {hint}")
        self.fact = fact
        self.hint = hint


class ConfigError(StreamsError, ValueError):
    """A setting is missing, unknown or has a value it cannot have."""


class TopologyError(StreamsError):
    """The topology is inconsistent: names clash, a parent or store is unknown, partition counts disagree."""


class OptionError(TopologyError, ValueError):
    """One argument of one call is wrong; the message names the operator."""


class InvalidAssignmentError(StreamsError):
    """What a TaskAssignor decided leaves a task out, gives it twice, or to somebody who cannot have it."""


class ApplicationShutdownError(StreamsError):
    """Some member of the group, here or elsewhere, failed in a way that its handler wants to end all of them."""


class TaskInterruptedError(StreamsError):
    """A task cannot go on, and not because of the record under way: leaving that record out would not help, and would lose it."""


class TaskCorruptedError(TaskInterruptedError):
    """A task's local state cannot be used: its offsets do not fit the changelog, or its rows cannot be read."""


class SerdeUnavailableError(TaskInterruptedError):
    """A serde could not ask what it has to ask: the record may be perfectly fine."""


class RecordError(StreamsError):
    """One record could not be handled. Says which operator, and which input record was being processed."""

    def __init__(
        self,
        fact: str,
        *,
        operator: str | None = None,
        topic: str | None = None,
        partition: int | None = None,
        offset: int | None = None,
        hint: str | None = None,
    ) -> None:
        where = [] if operator is None else [f"operator {operator}"]
        if topic is not None:
            where.append(f"topic {topic}, partition {partition}, offset {offset}")
        super().__init__(f"{fact} ({'; '.join(where)})" if where else fact, hint=hint)
        self.operator = operator
        self.topic = topic
        self.partition = partition
        self.offset = offset


class DeserializationError(RecordError):
    """The key or value bytes of an input record do not fit the source's serde."""


class TimestampError(RecordError):
    """The timestamp extractor failed, or found a negative timestamp and was told not to accept one."""


class ProcessingError(RecordError):
    """User code in an operator or punctuator raised, and no handler answered CONTINUE."""


class ProductionError(RecordError):
    """A result record could not be sent, and no handler answered CONTINUE."""


class SerializationError(ProductionError):
    """A result record does not fit the serde of its sink or store."""


class SinkFunctionError(ProductionError):
    """The topic function or partitioner of a sink raised. Its error is the cause, and what a processing handler is asked about."""


class StateStoreError(StreamsError):
    """A store cannot do what was asked: its data is unreadable, or the call is not possible on its kind."""


class ForeignStateError(StateStoreError):
    """A database holds the rows of another app or task, or of a newer version. It is left as it is."""


class StoreDamagedError(StateStoreError, TaskCorruptedError):
    """The files of a task's database are damaged or missing. `directory` is where they are."""

    def __init__(self, fact: str, *, directory: Path, hint: str | None = None) -> None:
        super().__init__(fact, hint=hint)
        self.directory = directory


class TaskLockedError(StateStoreError):
    """Another StreamThread of this process has not closed the task's databases yet. It will, when it comes to its own plan."""


class DiskFullError(StateStoreError, TaskInterruptedError):
    """The disk takes no more: no space, no inode, a quota or the process's limit. `directory` is the database's."""

    def __init__(self, fact: str, *, directory: Path, hint: str | None = None) -> None:
        super().__init__(fact, hint=hint)
        self.directory = directory


class ScanTooLargeError(StateStoreError):
    """More rows than allowed would have to be looked at for an answer."""


class StoreUnavailableError(StateStoreError):
    """The store is closed, or there is no store of that name here."""


class TooManyQueriesError(StoreUnavailableError):
    """More queries wait than can be answered soon."""
