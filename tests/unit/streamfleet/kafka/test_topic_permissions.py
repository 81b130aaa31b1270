"""What an app may do with its topics, by what the broker says."""

import pytest

from streamfleet.kafka.client_errors import AccessDeniedError
from streamfleet.kafka.topic_permissions import READ, SETTLING_MS, WRITE, check_permissions


class Clock:
    def __init__(self):
        self.ms = 0

    def now_ms(self):
        return self.ms

    def pause_ms(self, milliseconds):
        self.ms += milliseconds


class Broker:
    """Says one answer after the other, and the last one from then on."""

    def __init__(self, *answers):
        self.answers = list(answers)

    def allowed_operations(self, names):
        found = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return {name: frozenset(operations) for name, operations in found.items() if name in names}


def test_everything_that_is_missing_is_named_once_the_broker_has_had_its_moment():
    clock, broker = Clock(), Broker({"in": {"DESCRIBE"}, "log": {"READ"}, "out": {"WRITE", "DESCRIBE"}})
    with pytest.raises(AccessDeniedError, match="READ topic in, WRITE topic log ") as caught:
        check_permissions(broker, {"in": READ, "log": READ | WRITE, "out": WRITE}, clock)
    assert "out" not in str(caught.value)
    assert clock.ms >= SETTLING_MS


def test_a_right_that_has_just_been_granted_is_waited_for():
    clock = Clock()
    check_permissions(Broker({"in": {"DESCRIBE"}}, {"in": {"READ"}}), {"in": READ}, clock)
    assert 0 < clock.ms < SETTLING_MS


@pytest.mark.parametrize("answer", [{}, {"in": set()}], ids=["no such topic", "a broker that does not tell"])
def test_what_the_broker_does_not_say_is_not_held_against_anybody(answer):
    clock = Clock()
    check_permissions(Broker(answer), {"in": READ}, clock)
    assert clock.ms == 0
