"""Waiting for a broker: how long, how often, and who hears of it."""

import pytest

from streamfleet.kafka.broker_patience import LONGEST_PAUSE_MS, BrokerPatience
from streamfleet.kafka.client_errors import AccessDeniedError, BrokerUnavailableError
from streamfleet.kafka.outage import Outage


class Clock:
    """Every attempt takes `attempt_ms`, every pause what was asked for."""

    def __init__(self, attempt_ms=0):
        self.now, self.attempt_ms, self.pauses = 0, attempt_ms, []

    def now_ms(self):
        return self.now

    def pause_ms(self, milliseconds):
        self.pauses.append(milliseconds)
        self.now += milliseconds


class Broker:
    """Gives no answer until `answers_at`."""

    def __init__(self, clock, answers_at):
        self.clock, self.answers_at, self.asked_with = clock, answers_at, []

    def __call__(self, left_ms):
        self.asked_with.append(left_ms)
        self.clock.now += self.clock.attempt_ms
        if self.clock.now < self.answers_at:
            raise BrokerUnavailableError("no answer", code="_TRANSPORT", hint="look at it")
        return "answer"


class Told(Outage):
    """What an outage is told, as it comes."""

    def __init__(self, events):
        super().__init__()
        self.events = events

    def silent(self, who, doing, detail, *, waited_ms=0):
        self.events.append((doing, detail, waited_ms))

    def answers(self, who):
        self.events.append("answers")

    def gives_up(self, who):
        self.events.append("gives up")


def waiting(clock, timeout_ms, events):
    return BrokerPatience(timeout_ms=timeout_ms, outage=Told(events), clock=clock)


def test_an_answer_at_once_needs_no_words():
    clock, events = Clock(), []
    assert waiting(clock, 1000, events).ask("asking", Broker(clock, 0)) == "answer"
    assert (events, clock.pauses) == (["answers"], [])


def test_what_is_waited_for_can_be_asked_until_the_answer_is_there():
    clock, said = Clock(attempt_ms=1500), []
    patience = BrokerPatience(timeout_ms=10_000, clock=clock)

    def attempt(left_ms):
        said.append(patience.waits_for)
        return Broker(clock, 4000)(left_ms)

    assert patience.ask("listing topics", attempt) == "answer"
    assert said == [None, "listing topics, for 1 s so far (_TRANSPORT)", "listing topics, for 3 s so far (_TRANSPORT)"]
    assert patience.waits_for is None


def test_every_attempt_in_vain_is_told_once_it_takes_a_while():
    clock, events = Clock(attempt_ms=400), []
    assert waiting(clock, 10_000, events).ask("asking", Broker(clock, 1000)) == "answer"
    assert events == [("asking", "no answer", 400), ("asking", "no answer", 820), "answers"]


def test_a_moment_is_not_worth_a_word():
    clock, events = Clock(), []
    assert waiting(clock, 10_000, events).ask("asking", Broker(clock, 50)) == "answer"
    assert events == ["answers"]


def test_pauses_grow_to_a_quarter_of_a_second():
    clock = Clock()
    waiting(clock, 60_000, []).ask("asking", Broker(clock, 5000))
    assert clock.pauses[:3] == [20, 40, 80]
    assert max(clock.pauses) == LONGEST_PAUSE_MS


def test_at_the_deadline_the_last_reason_is_raised_with_the_count():
    clock, events = Clock(attempt_ms=300), []
    broker = Broker(clock, 10**9)
    with pytest.raises(BrokerUnavailableError) as caught:
        waiting(clock, 1000, events).ask("asking", broker)
    assert str(caught.value) == "asking got no answer within 1000 ms, in 3 attempts: no answer; look at it"
    assert caught.value.code == "_TRANSPORT"
    assert len(events) == 4 and events[-1] == "gives up"
    assert broker.asked_with[0] == 1000
    assert all(later < earlier for earlier, later in zip(broker.asked_with, broker.asked_with[1:], strict=False))


def test_an_error_that_time_does_not_heal_is_raised_at_once():
    clock = Clock()

    def ask(_):
        raise AccessDeniedError("no", code="TOPIC_AUTHORIZATION_FAILED")

    with pytest.raises(AccessDeniedError):
        waiting(clock, 60_000, []).ask("asking", ask)
    assert clock.pauses == []
