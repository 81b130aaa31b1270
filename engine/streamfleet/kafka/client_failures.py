"""librdkafka's errors become ours, in one place. Used by every adapter around every call that can fail.

Four shapes leave confluent-kafka's calls, all seen on a real broker:
- KafkaException with a KafkaError inside;
- SystemError with the KafkaException as its cause, when a Python callback ran in the same call;
- SystemError that says only "returned NULL without setting an exception", out of flush() of a producer that was fenced
  meanwhile: the client is dead, and has forgotten to say of what;
- a bare KafkaError, raised by flush() and poll() once the client is dead. It is not a BaseException, so that neither
  `except Exception` nor `except BaseException` sees it: it can only be caught by an `except` without a class.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException

from streamfleet.kafka.client_errors import (
    AccessDeniedError,
    BrokerUnavailableError,
    CredentialsRefusedError,
    KafkaClientError,
)

T = TypeVar("T")
Translate = Callable[[KafkaError, str], Exception]

_ACCESS_DENIED = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
_CREDENTIALS_REFUSED = {
    KafkaError._AUTHENTICATION,  # noqa: SLF001  (librdkafka's own codes begin with an underscore)
    KafkaError._SSL,  # noqa: SLF001
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.UNSUPPORTED_SASL_MECHANISM,
}
_UNAVAILABLE = {
    KafkaError._TIMED_OUT,  # noqa: SLF001
    KafkaError._TIMED_OUT_QUEUE,  # noqa: SLF001
    KafkaError._TRANSPORT,  # noqa: SLF001
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
    KafkaError._RESOLVE,  # noqa: SLF001
    KafkaError._WAIT_COORD,  # noqa: SLF001
    KafkaError._QUEUE_FULL,  # noqa: SLF001
    KafkaError._MSG_TIMED_OUT,  # noqa: SLF001
    KafkaError.BROKER_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError.NOT_CONTROLLER,
    KafkaError.NOT_COORDINATOR,
    KafkaError.NOT_ENOUGH_REPLICAS,
    KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.OFFSET_NOT_AVAILABLE,
    KafkaError.REPLICA_NOT_AVAILABLE,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.THROTTLING_QUOTA_EXCEEDED,
    KafkaError.KAFKA_STORAGE_ERROR,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
}
_FORGOTTEN = "returned NULL without setting an exception"


def is_unavailable(error: KafkaError) -> bool:
    """Whether the same request may succeed later without anybody changing anything."""
    return error.code() in _UNAVAILABLE


def client_error(error: KafkaError, doing: str) -> KafkaClientError:
    """The general translation; who knows more about its calls translates first and falls back to this."""
    code, fact = error.name(), f"{doing} failed: {error.str()} ({error.name()})"
    if error.code() in _ACCESS_DENIED:
        return AccessDeniedError(fact, code=code, hint="grant the missing ACL to the user of this app")
    if error.code() in _CREDENTIALS_REFUSED:
        return CredentialsRefusedError(
            fact, code=code, hint="check security.protocol and the sasl.* and ssl.* settings"
        )
    if is_unavailable(error):
        return BrokerUnavailableError(fact, code=code, hint="check that the brokers run and can be reached")
    return KafkaClientError(fact, code=code)


def call_client(doing: str, call: Callable[..., T], *arguments: Any, translate: Translate = client_error) -> T:
    """The call's result; whatever shape librdkafka's error takes, it leaves as `translate` says."""
    try:
        return call(*arguments)
    except:  # noqa: E722  (nothing else sees a bare KafkaError)
        error = _kafka_error(sys.exc_info()[1])
        if error is None:
            raise
    # Raised out here, where Python no longer handles the other one: what is no exception must not become a __context__.
    raise translate(error, doing) from KafkaException(error)


def _kafka_error(raised: object) -> KafkaError | None:
    if isinstance(raised, SystemError):
        if raised.__cause__ is None and raised.__context__ is None and _FORGOTTEN in str(raised):
            return KafkaError(KafkaError._FATAL, str(raised))  # noqa: SLF001
        raised = raised.__cause__ or raised.__context__
    if isinstance(raised, KafkaException) and raised.args and isinstance(raised.args[0], KafkaError):
        return raised.args[0]
    return raised if isinstance(raised, KafkaError) else None
