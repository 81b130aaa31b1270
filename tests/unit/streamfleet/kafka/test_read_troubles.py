"""ReadTroubles: what a consumer says is said once per cause, counted once per cause, and an error where it lasts."""

import pytest
import structlog

from streamfleet.ids import TopicPartition
from streamfleet.kafka.client_errors import AccessDeniedError, PartitionUnreadableError
from streamfleet.kafka.read_troubles import QUIET_MS, REMINDER_MS, ReadTroubles
from streamfleet.ports import ClientTrouble, PartitionUnavailable
from streamfleet.testing import ManualClock

IN = TopicPartition("in", 3)
REFUSED = PartitionUnavailable(IN, "UNKNOWN_SERVER_ERROR", "it went wrong")
LEADERLESS = PartitionUnavailable(IN, "LEADER_NOT_AVAILABLE", "no leader")


class Heard:
    def __init__(self, timeout_ms=60_000):
        self.clock, self.counted = ManualClock(), []
        self.troubles = ReadTroubles(
            "input", self.clock.monotonic_ms, timeout_ms=timeout_ms, count_stall=lambda *what: self.counted.append(what)
        )

    def hear(self, event, position=5, end=9, times=1, every_ms=500):
        for _ in range(times):
            self.clock.advance(every_ms)
            self.troubles.hear(event, position, end)


@pytest.fixture
def logged():
    with structlog.testing.capture_logs() as lines:
        yield lines


def codes(lines):
    return [line["code"] for line in lines]


def test_a_cause_is_said_and_counted_once_and_another_one_again(logged):
    heard = Heard()
    heard.hear(REFUSED, times=10)
    heard.hear(LEADERLESS, times=10)
    heard.hear(REFUSED, times=10)
    assert codes(logged) == ["UNKNOWN_SERVER_ERROR", "LEADER_NOT_AVAILABLE"]
    assert heard.counted == [("in", "UNKNOWN_SERVER_ERROR"), ("in", "LEADER_NOT_AVAILABLE")]


def test_the_same_trouble_further_on_is_another_one(logged):
    heard = Heard()
    heard.hear(REFUSED, position=5)
    heard.hear(REFUSED, position=7)
    assert [line["position"] for line in logged] == [5, 7] and len(heard.counted) == 2


def test_a_trouble_that_lasts_is_an_error_with_its_place_and_its_cause():
    heard = Heard()
    heard.hear(REFUSED, times=60)
    heard.hear(LEADERLESS, times=60)
    with pytest.raises(PartitionUnreadableError) as caught:
        heard.hear(REFUSED, times=2)
    assert (caught.value.partition, caught.value.position, caught.value.end) == (IN, 5, 9)
    assert (
        "input in-3 gives nothing from offset 5 of 9 on, for 60000 ms: it went wrong (UNKNOWN_SERVER_ERROR); check"
        in str(caught.value)
    )


def test_a_trouble_that_was_over_begins_its_time_again(logged):
    heard = Heard()
    heard.hear(LEADERLESS, times=100)
    heard.clock.advance(QUIET_MS)
    heard.hear(LEADERLESS, times=100)
    assert len(logged) == len(heard.counted) == 2


def test_records_in_between_begin_the_time_again():
    heard = Heard()
    for position in range(10):
        heard.hear(REFUSED, position=position, times=100)


def test_without_a_time_out_it_is_never_an_error():
    heard = Heard(timeout_ms=None)
    heard.hear(REFUSED, times=10_000)
    assert heard.troubles.why(IN, 5) == ("it went wrong (UNKNOWN_SERVER_ERROR)", heard.troubles.why(IN, 5)[1])
    assert heard.troubles.why(IN, 6) is None and heard.troubles.why(TopicPartition("in", 4), 5) is None
    heard.clock.advance(QUIET_MS)
    assert heard.troubles.why(IN, 5) is None


def test_a_missing_permission_is_an_error_at_once_that_names_the_topic():
    heard = Heard()
    denied = PartitionUnavailable(IN, "TOPIC_AUTHORIZATION_FAILED", "Broker: Topic authorization failed")
    with pytest.raises(AccessDeniedError, match="input in-3 may not be read.*; grant READ on topic in to the user"):
        heard.hear(denied)
    assert heard.counted == [("in", "TOPIC_AUTHORIZATION_FAILED")]


def test_trouble_of_the_connection_is_said_now_and_then(logged):
    heard = Heard()
    for _ in range(2 * REMINDER_MS // 500):
        heard.troubles.hear_client(ClientTrouble("_TRANSPORT", "refused"))
        heard.troubles.hear_client(ClientTrouble("_ALL_BROKERS_DOWN", "all down"))
        heard.clock.advance(500)
    assert codes(logged) == ["_TRANSPORT", "_ALL_BROKERS_DOWN"] * 2
    assert heard.counted == []


def test_a_damaged_record_is_an_error_at_once():
    heard = Heard(timeout_ms=None)
    with pytest.raises(
        PartitionUnreadableError, match="input in-3 gives nothing from offset 5 of 9 on: bad CRC .*damaged"
    ):
        heard.hear(PartitionUnavailable(IN, "_BAD_MSG", "bad CRC"))
    assert heard.counted == [("in", "_BAD_MSG")]
