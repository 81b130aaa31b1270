"""A line to the coordinator of a group or transactional id that mends itself.

Called by group_client.py, offset_client.py and transaction_client.py, each with lines of their own. One call at a time:
`begin` takes it, `advance` moves it on by one bounded step (find the coordinator, connect, send, wait a little) and
gives the answer once it is there. A lost connection or a coordinator that moved is not an answer: the call is sent
again, after a back-off. Only what no retry can mend leaves as GroupFatalError.

What an answer means to the group is decided by the callers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import structlog

from streamfleet.errors import StreamsError
from streamfleet.kafka.address import Address
from streamfleet.kafka.client_errors import UnknownTransactionOutcomeError
from streamfleet.kafka.connection import Connection, Connector
from streamfleet.kafka.error_codes import COORDINATOR_AWAY, NOT_ALLOWED, ErrorCode
from streamfleet.kafka.errors import AuthorizationError, GroupTimeoutError
from streamfleet.kafka.group_messages import CoordinatorKind, find_coordinator
from streamfleet.kafka.outage import Outage
from streamfleet.kafka.patience import PatientClock
from streamfleet.kafka.wire import AnswerT, Call

log = structlog.get_logger(__name__)

_ACL_HINTS = {
    CoordinatorKind.GROUP: "grant READ on the group with the application id",
    CoordinatorKind.TRANSACTION: "grant WRITE on the transactional ids that begin with the application id",
}


@dataclass(frozen=True)
class RetrySettings:
    backoff_ms: int = 20
    """Pause before the first retry; doubled with every further one."""
    max_backoff_ms: int = 1_000
    request_timeout_ms: int = 10_000
    """After this long without an answer the connection is given up and the call sent on a new one."""


class NoCoordinatorError(ConnectionError):
    """A broker answered that there is none at the moment."""


class CoordinatorLine:
    """Used by one thread."""

    def __init__(
        self,
        connector: Connector,
        clock: PatientClock,
        key: str,
        kind: CoordinatorKind = CoordinatorKind.GROUP,
        retry: RetrySettings | None = None,
        outage: Outage | None = None,
    ) -> None:
        self._outage = outage or Outage(clock=clock)
        self._connector = connector
        self._clock = clock
        self._key = key
        self._kind = kind
        self._retry = retry or RetrySettings()
        self._address: Address | None = None
        self._connection: Connection | None = None
        self._call: Call[Any] | None = None
        self._timeout_ms = self._retry.request_timeout_ms
        self._sent_at_ms: int | None = None
        self._in_doubt = False  # the call in hand left this process, and no answer has come
        self._times_sent = 0
        self._was_given_up = False
        self._failures = 0
        self._retry_at_ms = 0
        self._next_bootstrap = 0
        self.last_failure: str | None = None
        """Why the last try failed, None after an answer: what to say when patience is over."""

    @property
    def busy(self) -> bool:
        return self._call is not None

    @property
    def sent(self) -> bool:
        """Whether the call in hand is on its way to the coordinator."""
        return self._sent_at_ms is not None

    @property
    def was_resent(self) -> bool:
        """Whether the last call was sent more than once: an answer before the one that arrived may have been lost."""
        return self._times_sent > 1

    @property
    def may_arrive_late(self) -> bool:
        """Whether a copy of the last call was given up for want of an answer: it may lie there still, and be carried out."""
        return self._was_given_up

    def begin(self, call: Call[Any], *, timeout_ms: int | None = None) -> None:
        """Take a call; `timeout_ms` for those whose answer may rightly take longer than usual."""
        assert self._call is None, "an earlier call is not answered yet"
        self._call = call
        self._in_doubt = self._was_given_up = False
        self._times_sent = 0
        self._timeout_ms = timeout_ms or self._retry.request_timeout_ms

    def advance(self, wait_ms: int) -> Any | None:
        """One step of the call in hand, waiting no longer than that (connecting may take its own time-out)."""
        assert self._call is not None, "nothing was begun"
        until_ms = self._clock.now_ms() + wait_ms
        if not self._backed_off(wait_ms):
            return None
        try:
            connection = self._ready(self._call)
            answer = connection.receive(max(0, until_ms - self._clock.now_ms()))
        except OSError as error:
            why = f"{type(error).__name__}: {error}"
            # A line that breaks may just have been idle for too long, and a broker that knows no coordinator has answered.
            if self._failures > 0 and not isinstance(error, NoCoordinatorError):
                self._outage.silent(self, self._call.name, why)
            self._fail(why)
            return None
        if answer is None:
            self._check_patience()
            return None
        self._in_doubt = False
        if answer.code in COORDINATOR_AWAY:
            self._fail(f"{self._call.name} was answered {answer.code.name}")
            return None
        self._call = self._sent_at_ms = self.last_failure = None
        self._failures = 0
        self._outage.answers(self)
        return answer

    def ask(self, call: Call[AnswerT], deadline_ms: int, *, may_resend: bool = True) -> AnswerT:
        """The answer, or GroupTimeoutError at the deadline. For threads that have nothing else to do."""
        self.begin(call)
        try:
            while True:
                answer: AnswerT | None = self.advance(max(1, min(100, deadline_ms - self._clock.now_ms())))
                if answer is not None:
                    return answer
                if self._in_doubt and not self.sent and not may_resend:
                    raise UnknownTransactionOutcomeError(
                        f"the connection broke after {call.name} was sent: {self.last_failure}",
                        code="NETWORK_EXCEPTION",
                        hint="discard the producer: a late arrival could end its next transaction",
                    )
                if self._clock.now_ms() >= deadline_ms:
                    raise GroupTimeoutError(
                        f"the coordinator of {self._key} did not answer {call.name} in time"
                        + (f" ({self.last_failure})" if self.last_failure else ""),
                        hint="is the broker reachable and the cluster healthy?",
                    )
        except StreamsError:
            self.cancel()
            raise

    def cancel(self) -> None:
        """Forget the call in hand. If it was sent the connection goes too: its answer must not meet another call."""
        if self.sent:
            self._disconnect()
        self._call = None
        self._outage.gives_up(self)

    def close(self) -> None:
        self._call = None
        self._outage.gives_up(self)
        self._disconnect()

    def _backed_off(self, wait_ms: int) -> bool:
        left_ms = self._retry_at_ms - self._clock.now_ms()
        if left_ms > 0:
            self._clock.pause_ms(min(left_ms, wait_ms))
        return left_ms <= wait_ms

    def _ready(self, call: Call[Any]) -> Connection:
        """The connection, with the call sent on it."""
        if self._connection is None:
            if self._address is None:
                self._address = self._find()
            self._connection = self._connector.connect(self._address)
        if self._sent_at_ms is None:
            self._in_doubt = True
            self._times_sent += 1
            self._connection.send(call)
            self._sent_at_ms = self._clock.now_ms()
        return self._connection

    def _find(self) -> Address:
        bootstrap = self._connector.bootstrap
        asked = bootstrap[self._next_bootstrap % len(bootstrap)]
        self._next_bootstrap += 1
        connection = self._connector.connect(asked)
        try:
            connection.send(find_coordinator(self._key, self._kind))
            answer = connection.receive(self._retry.request_timeout_ms)
        finally:
            connection.close()
        if answer is None:
            raise ConnectionError(f"broker {asked} did not name the coordinator in time")
        if answer.code in NOT_ALLOWED:
            raise AuthorizationError(
                f"not allowed to use {self._kind.name.lower()} {self._key} ({answer.code.name})",
                hint=_ACL_HINTS[self._kind],
            )
        if answer.code is not ErrorCode.NONE:
            # At the very first use of a cluster the topic behind the coordinators is still being created.
            raise NoCoordinatorError(f"no coordinator: {answer.code.name}")
        found: Address = answer.address
        return found

    def _check_patience(self) -> None:
        if self._sent_at_ms is not None and self._clock.now_ms() - self._sent_at_ms >= self._timeout_ms:
            self._was_given_up = True
            why = f"no answer within {self._timeout_ms} ms"
            assert self._call is not None
            self._outage.silent(self, self._call.name, why, waited_ms=self._timeout_ms)
            self._fail(why)

    def _fail(self, why: str) -> None:
        """Start over after a while, with the coordinator looked up again."""
        assert self._call is not None
        if self._failures == 0:
            log.info("coordinator line broke", key=self._key, call=self._call.name, why=why)
        self.last_failure = why
        self._disconnect()
        self._address = None
        pause_ms = min(self._retry.backoff_ms * 2 ** min(self._failures, 16), self._retry.max_backoff_ms)
        self._failures += 1
        self._retry_at_ms = self._clock.now_ms() + pause_ms

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = self._sent_at_ms = None
