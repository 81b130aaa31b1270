from __future__ import annotations

import pytest
from tests.unit.streamfleet.kafka.scripted_coordinator import COORDINATOR, SILENCE, HandClock, ScriptedCoordinator

from streamfleet.kafka.client_errors import UnknownTransactionOutcomeError
from streamfleet.kafka.coordinator import CoordinatorLine, RetrySettings
from streamfleet.kafka.error_codes import ErrorCode
from streamfleet.kafka.errors import AuthenticationError, AuthorizationError, GroupTimeoutError
from streamfleet.kafka.group_messages import (
    ConsumerGroupMetadata,
    CoordinatorAnswer,
    CoordinatorKind,
    PlainAnswer,
    heartbeat,
)
from streamfleet.kafka.outage import Outage
from streamfleet.metrics import OutageCounts

CALL = heartbeat(ConsumerGroupMetadata("group", 1, "me"))
OK = PlainAnswer(ErrorCode.NONE)
RETRY = RetrySettings(backoff_ms=10, max_backoff_ms=40, request_timeout_ms=500)


@pytest.fixture
def broker():
    return ScriptedCoordinator(HandClock())


@pytest.fixture
def line(broker):
    return CoordinatorLine(broker, broker.clock, "group", retry=RETRY)


def answer(line):
    """The answer, and how many steps it took."""
    for step in range(1, 400):
        if (got := line.advance(5)) is not None:
            return got, step
    raise AssertionError("no answer")


def test_the_coordinator_is_found_once_and_then_asked_directly(broker, line):
    for _ in range(3):
        line.begin(CALL)
        assert answer(line) == (OK, 1)
    assert broker.connects == [("one", 1), COORDINATOR]
    assert [call.name for call in broker.calls] == ["FindCoordinator", "Heartbeat", "Heartbeat", "Heartbeat"]


def test_a_coordinator_that_does_not_exist_yet_is_waited_for(broker, line):
    missing = CoordinatorAnswer(ErrorCode.COORDINATOR_NOT_AVAILABLE, COORDINATOR, None)
    broker.script("FindCoordinator", missing, missing)
    line.begin(CALL)
    assert answer(line)[0] == OK
    assert broker.connects == [("one", 1), ("two", 2), ("one", 1), COORDINATOR]  # in turn


@pytest.mark.parametrize(
    "code", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
)
def test_a_coordinator_that_moved_is_looked_up_again_and_the_call_repeated(broker, line, code):
    broker.script("Heartbeat", PlainAnswer(code))
    line.begin(CALL)
    assert answer(line)[0] == OK
    assert [call.name for call in broker.calls] == ["FindCoordinator", "Heartbeat"] * 2


def test_a_broken_connection_is_replaced_and_the_call_repeated(broker, line):
    broker.script("Heartbeat", ConnectionResetError("gone"), BrokenPipeError("gone again"))
    line.begin(CALL)
    assert answer(line)[0] == OK
    assert len(broker.sent("Heartbeat")) == 3


def test_retries_come_slower_and_slower_up_to_a_limit(broker, line):
    broker.script("Heartbeat", *[ConnectionError("gone")] * 5)
    line.begin(CALL)
    began = broker.clock.now_ms()
    answer(line)
    assert broker.clock.now_ms() - began == 10 + 20 + 40 + 40 + 40


def test_after_an_answer_the_back_off_starts_anew(broker, line):
    for _ in range(2):
        broker.script("Heartbeat", ConnectionError("gone"))
        line.begin(CALL)
        began = broker.clock.now_ms()
        answer(line)
        assert broker.clock.now_ms() - began == 10


def test_a_step_never_waits_longer_than_it_may(broker, line):
    broker.script("Heartbeat", ConnectionError("gone"), SILENCE)
    line.begin(CALL)
    for _ in range(20):
        began = broker.clock.now_ms()
        line.advance(5)
        assert broker.clock.now_ms() - began <= 5


def test_a_call_without_an_answer_is_sent_again_on_a_new_connection(broker, line):
    broker.script("Heartbeat", SILENCE)
    line.begin(CALL)
    began = broker.clock.now_ms()
    answer(line)
    assert 500 <= broker.clock.now_ms() - began <= 520
    assert len(broker.sent("Heartbeat")) == 2


def test_a_call_may_have_more_patience_than_usual(broker, line):
    broker.script("Heartbeat", SILENCE)
    line.begin(CALL, timeout_ms=2_000)
    began = broker.clock.now_ms()
    while not broker.sent("Heartbeat")[1:]:
        line.advance(50)
    assert broker.clock.now_ms() - began >= 2_000


def test_asking_gives_up_at_the_deadline_and_says_why(broker, line):
    broker.default("Heartbeat", ConnectionResetError("gone"))
    deadline = broker.clock.now_ms() + 1_000
    with pytest.raises(GroupTimeoutError, match="did not answer Heartbeat in time .ConnectionResetError: gone"):
        line.ask(CALL, deadline)
    assert deadline <= broker.clock.now_ms() <= deadline + 50
    broker.default("Heartbeat", OK)
    assert line.ask(CALL, broker.clock.now_ms() + 1_000) == OK


def test_the_answer_to_a_cancelled_call_never_meets_another(broker, line):
    broker.script("Heartbeat", SILENCE, PlainAnswer(ErrorCode.UNKNOWN_MEMBER_ID))
    line.begin(CALL)
    line.advance(1)
    line.cancel()
    line.begin(CALL)
    assert answer(line) == (PlainAnswer(ErrorCode.UNKNOWN_MEMBER_ID), 1)
    assert broker.connects.count(COORDINATOR) == 2


def test_a_call_that_must_not_be_repeated_is_in_doubt_when_the_connection_breaks(broker, line):
    broker.script("Heartbeat", ConnectionResetError("gone"))
    with pytest.raises(UnknownTransactionOutcomeError, match="discard the producer"):
        line.ask(CALL, broker.clock.now_ms() + 1_000, may_resend=False)
    assert len(broker.sent("Heartbeat")) == 1
    assert not line.busy, "the next call would find this one still in hand"


def test_such_a_call_is_repeated_if_the_coordinator_said_it_did_nothing(broker, line):
    broker.script("Heartbeat", PlainAnswer(ErrorCode.NOT_COORDINATOR))
    broker.refuse_connects.append(ConnectionRefusedError("not up yet"))
    assert line.ask(CALL, broker.clock.now_ms() + 1_000, may_resend=False) == OK


def test_what_no_retry_can_mend_is_raised_at_once(broker, line):
    broker.refuse_connects.append(AuthenticationError("wrong password"))
    line.begin(CALL)
    with pytest.raises(AuthenticationError):
        line.advance(5)


@pytest.mark.parametrize(
    ("kind", "hint"),
    [(CoordinatorKind.GROUP, "READ on the group"), (CoordinatorKind.TRANSACTION, "WRITE on the trans")],
)
def test_a_missing_acl_is_named(broker, kind, hint):
    broker.script("FindCoordinator", CoordinatorAnswer(ErrorCode.GROUP_AUTHORIZATION_FAILED, COORDINATOR, None))
    line = CoordinatorLine(broker, broker.clock, "group", kind)
    line.begin(CALL)
    with pytest.raises(AuthorizationError, match=hint):
        line.advance(5)


def test_a_call_that_was_given_up_may_arrive_late_and_one_whose_connection_broke_may_not(broker, line):
    for lost, late in ((SILENCE, True), (ConnectionResetError("gone"), False)):
        broker.script("Heartbeat", lost)
        line.begin(CALL)
        answer(line)
        assert line.may_arrive_late is late
    line.begin(CALL)
    answer(line)
    assert not line.may_arrive_late


@pytest.fixture
def counts():
    return OutageCounts()


@pytest.fixture
def watched_line(broker, counts):
    return CoordinatorLine(broker, broker.clock, "group", retry=RETRY, outage=Outage(counts, broker.clock))


def test_a_coordinator_that_stays_silent_is_one_outage_until_it_answers(broker, watched_line, counts):
    broker.script("Heartbeat", SILENCE, SILENCE, SILENCE, OK)
    watched_line.begin(CALL)
    while watched_line.advance(5) is None:
        assert counts.outages <= 1
    assert (counts.outages, counts.away_seconds) == (1, 0)


def test_a_line_that_was_idle_for_too_long_is_no_outage(broker, watched_line, counts):
    broker.script("Heartbeat", ConnectionError("closed by the broker"), OK)
    watched_line.begin(CALL)
    assert answer(watched_line)[0] == OK
    assert counts.outages == 0


def test_a_coordinator_that_does_not_exist_yet_is_no_outage(broker, watched_line, counts):
    missing = CoordinatorAnswer(ErrorCode.COORDINATOR_NOT_AVAILABLE, COORDINATOR, None)
    broker.script("FindCoordinator", missing, missing, missing)
    watched_line.begin(CALL)
    assert answer(watched_line)[0] == OK
    assert counts.outages == 0
