"""Whatever shape librdkafka gives an error, it leaves as one of ours."""

import ctypes

import pytest
from confluent_kafka import KafkaError, KafkaException

from streamfleet.kafka.client_errors import (
    AccessDeniedError,
    BrokerUnavailableError,
    CredentialsRefusedError,
    KafkaClientError,
)
from streamfleet.kafka.client_failures import call_client


def raising(code, shape="exception"):
    error = KafkaError(code, "the reason")

    def call():
        if shape == "bare":
            # What flush() of a dead producer does: a C extension can raise what is no exception.
            raise_without_check(error)
        try:
            raise KafkaException(error)
        except KafkaException as cause:
            if shape == "exception":
                raise
            raise SystemError("returned a result with an exception set") from cause

    return call


def raise_without_check(error):
    raise_object = ctypes.pythonapi.PyErr_SetObject
    raise_object.argtypes = [ctypes.py_object, ctypes.py_object]
    raise_object.restype = None
    raise_object(type(error), error)


@pytest.mark.parametrize("shape", ["exception", "system error"])
@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (KafkaError._TRANSPORT, BrokerUnavailableError),
        (KafkaError._TIMED_OUT, BrokerUnavailableError),
        (KafkaError.NOT_COORDINATOR, BrokerUnavailableError),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, AccessDeniedError),
        (KafkaError.CLUSTER_AUTHORIZATION_FAILED, AccessDeniedError),
        (KafkaError._AUTHENTICATION, CredentialsRefusedError),
        (KafkaError._SSL, CredentialsRefusedError),
        (KafkaError.INVALID_CONFIG, KafkaClientError),
    ],
)
def test_an_error_leaves_typed_with_code_and_reason(code, kind, shape):
    with pytest.raises(KafkaClientError, match="^doing it failed: the reason") as caught:
        call_client("doing it", raising(code, shape))
    assert type(caught.value) is kind
    assert caught.value.code == KafkaError(code).name()
    assert isinstance(caught.value.__cause__, KafkaException)


def test_what_is_no_exception_is_caught_as_well():
    with pytest.raises(BrokerUnavailableError, match="the reason") as caught:
        call_client("doing it", raising(KafkaError._TRANSPORT, "bare"))
    assert caught.value.__context__ is caught.value.__cause__ or caught.value.__context__ is None


def test_a_client_that_died_without_saying_of_what_is_a_fatal_error():
    def call():
        raise SystemError("<built-in method flush of cimpl.Producer object> returned NULL without setting an exception")

    with pytest.raises(KafkaClientError) as caught:
        call_client("flushing", call)
    assert caught.value.code == "_FATAL"


@pytest.mark.parametrize("error", [ValueError("x"), BufferError("full"), KeyboardInterrupt(), SystemError("other")])
def test_other_errors_pass_unchanged(error):
    def call():
        raise error

    with pytest.raises(type(error)) as caught:
        call_client("doing it", call)
    assert caught.value is error


def test_the_result_and_the_arguments_are_passed_on():
    assert call_client("adding", lambda a, b: a + b, 1, 2) == 3
