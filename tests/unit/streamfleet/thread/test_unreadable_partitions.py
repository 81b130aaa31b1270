"""What a StreamThread and the GlobalUpdater do about partitions that cannot be read."""

from types import SimpleNamespace

import pytest
import structlog
from tests.unit.streamfleet.thread.test_missing_offsets import poll, thread_of

import streamfleet as sf
from streamfleet.ids import TopicPartition
from streamfleet.kafka.client_errors import AccessDeniedError, PartitionUnreadableError
from streamfleet.ports import ClientTrouble, OffsetKind, OffsetOutOfRange, PartitionUnavailable
from streamfleet.thread.global_updater import GlobalUpdater

IN = TopicPartition("in", 0)
DENIED = PartitionUnavailable(IN, "TOPIC_AUTHORIZATION_FAILED", "Broker: Topic authorization failed")
LEADERLESS = PartitionUnavailable(IN, "LEADER_NOT_AVAILABLE", "no leader")
DAMAGED = PartitionUnavailable(IN, "_BAD_MSG", "failed CRC32C check")
NONSENSE = OffsetOutOfRange(IN, 7306366917193761389)
"""What librdkafka goes on with behind a damaged record."""


class Stuck:
    """A consumer of one partition that gives nothing from an offset on and says why with every poll."""

    def __init__(self, *events, is_assigned=True):
        self.events, self.at, self.is_assigned = events, 5, is_assigned
        self.closed = False

    def assign(self, positions):
        pass

    def assignment(self):
        return frozenset({IN} if self.is_assigned else ())

    def poll_batch(self, timeout_ms, limit):
        return []

    def take_events(self):
        return list(self.events)

    def position(self, partition):
        assert self.is_assigned
        return self.at

    def lag_records(self, partition):
        return 10


@pytest.fixture
def logged():
    with structlog.testing.capture_logs() as lines:
        yield lines


def poll_for(thread, milliseconds, every_ms=500):
    for _ in range(milliseconds // every_ms):
        thread._clock.advance(every_ms)
        poll(thread)


# inputs


def test_an_input_that_may_not_be_read_ends_the_thread_at_once():
    thread = thread_of([], processed_elsewhere=False, consumer=Stuck(DENIED))
    with pytest.raises(AccessDeniedError, match="input in-0 may not be read.*grant READ on topic in"):
        poll(thread)


def test_an_input_that_gives_nothing_is_said_once_and_ends_the_thread_after_the_time_out(logged):
    thread = thread_of([], processed_elsewhere=False, consumer=Stuck(LEADERLESS))
    poll_for(thread, thread._config.task_timeout_ms)
    assert [line["event"] for line in logged] == ["partition cannot be read"]
    with pytest.raises(PartitionUnreadableError, match="input in-0 gives nothing from offset 5 of 15 on"):
        poll_for(thread, 1000)


def test_a_damaged_input_ends_the_thread_before_it_goes_on_anywhere_else():
    noted = []
    thread = thread_of(noted, processed_elsewhere=False, consumer=Stuck(DAMAGED, NONSENSE))
    with pytest.raises(
        PartitionUnreadableError, match="input in-0 gives nothing from offset 5 of 15 on: failed CRC32C"
    ):
        poll(thread)
    assert noted == []


def test_an_input_that_was_given_up_is_nobodys_trouble(logged):
    thread = thread_of([], processed_elsewhere=False, consumer=Stuck(DENIED, LEADERLESS, is_assigned=False))
    poll_for(thread, 2 * thread._config.task_timeout_ms)
    assert logged == []


def test_a_broker_that_is_away_ends_nothing_here(logged):
    thread = thread_of([], processed_elsewhere=False, consumer=Stuck(ClientTrouble("_ALL_BROKERS_DOWN", "gone")))
    poll_for(thread, 60_000)
    assert len(logged) == 1


# global topics


def global_updater(consumer, clock, end=15, **settings):
    task = SimpleNamespace(initialize=lambda: None, stores={}, flush=lambda: None)
    ends = {OffsetKind.EARLIEST: 5, OffsetKind.LAST_STABLE: end}
    admin = SimpleNamespace(list_offsets=lambda partitions, kind: dict.fromkeys(partitions, ends[kind]))
    return GlobalUpdater(task, consumer, admin, (IN,), clock, task_timeout_ms=60_000, **settings)


class Clock:
    ms = 0

    def now_ms(self):
        self.ms += 500
        return self.ms


def test_a_global_topic_that_may_not_be_read_ends_the_start_at_once():
    with pytest.raises(AccessDeniedError, match="global topic in-0 may not be read"):
        global_updater(Stuck(DENIED), Clock()).bootstrap()


@pytest.mark.parametrize("events", [(), (LEADERLESS,)], ids=["silent", "told"])
def test_a_start_does_not_wait_for_ever_for_a_global_topic(events, logged):
    clock, counted = Clock(), []
    updater = global_updater(Stuck(*events), clock, count_stall=lambda *what: counted.append(what))
    with pytest.raises(PartitionUnreadableError, match="global topic in-0 gives nothing from offset 5 of 15 on"):
        updater.bootstrap()
    assert 30_000 < clock.ms < 130_000
    assert counted == [("in", "LEADER_NOT_AVAILABLE" if events else "no records")]
    assert len([line for line in logged if line["log_level"] == "warning"]) == 1


def test_a_global_topic_that_cannot_be_read_on_while_the_app_runs_ends_it_after_the_time_out():
    clock = sf.testing.ManualClock()
    updater = global_updater(Stuck(LEADERLESS), clock, end=5)
    updater.bootstrap()
    for _ in range(120):
        updater.run_once()
        clock.advance(500)
    with pytest.raises(PartitionUnreadableError):
        updater.run_once()


def test_a_global_topic_with_a_gap_is_an_error_in_every_step_however_often_its_thread_is_replaced():
    consumer = Stuck()
    updater = global_updater(consumer, sf.testing.ManualClock(), end=5)
    updater.bootstrap()
    consumer.events = [OffsetOutOfRange(IN, 7)]
    for _ in range(3):
        with pytest.raises(sf.StreamsError, match="no longer has offset 7"):
            updater.run_once()
        consumer.events = []  # it is told once
