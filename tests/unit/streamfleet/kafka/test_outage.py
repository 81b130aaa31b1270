"""Brokers that do not answer: one line when it begins, one when it is over, whoever and however many ask."""

import pytest
from structlog.testing import capture_logs

from streamfleet.kafka.outage import Outage
from streamfleet.metrics import OutageCounts


class Clock:
    now = 0

    def now_ms(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def counts():
    return OutageCounts()


@pytest.fixture
def outage(counts, clock):
    return Outage(counts, clock)


def said(lines):
    """Those that are not for debugging."""
    return [line for line in lines if line["log_level"] != "debug"]


def test_many_attempts_of_many_are_two_lines_and_one_outage(outage, clock, counts):
    with capture_logs() as lines:
        for _ in range(50):
            for who in "abc":
                clock.now += 100
                outage.silent(who, "committing", "no answer", waited_ms=0)
        for who in "abc":
            outage.answers(who)
    begin, end = said(lines)
    assert begin == {
        "event": "broker does not answer",
        "log_level": "warning",
        "doing": "committing",
        "waited_ms": 0,
        "detail": "no answer",
    }
    assert end == {"event": "broker answers again", "log_level": "warning", "away_ms": 149 * 100}
    assert len(lines) == 2 + 149
    assert counts.outages == 1


def test_it_is_over_when_the_last_of_them_has_an_answer(outage, counts):
    with capture_logs() as lines:
        outage.silent("a", "asking", "no answer")
        outage.silent("b", "asking", "no answer")
        outage.answers("a")
        assert len(said(lines)) == 1 and counts.away_seconds > 0
        outage.answers("b")
    assert len(said(lines)) == 2 and counts.away_seconds == 0


def test_one_that_gives_up_does_not_end_it_and_the_next_answer_does(outage):
    with capture_logs() as lines:
        outage.silent("a", "asking", "no answer")
        outage.gives_up("a")
        outage.silent("b", "asking", "no answer")
        outage.gives_up("b")
        assert len(said(lines)) == 1
        outage.answers("c")
    assert [line["event"] for line in said(lines)] == ["broker does not answer", "broker answers again"]


def test_the_time_that_was_waited_before_the_first_word_counts(outage, clock, counts):
    clock.now = 10_000
    with capture_logs() as lines:
        outage.silent("a", "asking", "no answer", waited_ms=4000)
        assert 4 <= counts.away_seconds < 5
        clock.now += 1000
        outage.answers("a")
    assert said(lines)[1]["away_ms"] == 5000


def test_answers_without_an_outage_are_not_worth_a_word(outage, counts):
    with capture_logs() as lines:
        outage.answers("a")
    assert (lines, counts.outages) == ([], 0)
