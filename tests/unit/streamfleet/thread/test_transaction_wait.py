"""TransactionWait: transactions that are lost again and again are begun less and less often, and not for ever."""

import pytest
from tests.unit.streamfleet.thread.single_thread import INPUT, run

from streamfleet.kafka.client_errors import ProducerLostError
from streamfleet.testing import ManualClock
from streamfleet.thread.transaction_wait import FIRST_PAUSE_MS, LONGEST_PAUSE_MS, TransactionWait

LOST = ProducerLostError("the producer is lost", code="_FATAL")
TIMEOUT_MS, QUIET_MS = 300_000, 10_000


@pytest.fixture
def clock():
    return ManualClock(5)


@pytest.fixture
def wait(clock):
    return TransactionWait(clock, timeout_ms=TIMEOUT_MS, quiet_ms=QUIET_MS)


def pause_of(wait, clock):
    """Until it is over, and no step less."""
    paused_ms = 0
    while not wait.is_over():
        clock.advance(FIRST_PAUSE_MS)
        paused_ms += FIRST_PAUSE_MS
    return paused_ms


def test_the_first_loss_costs_no_pause(wait, clock):
    assert wait.is_over()
    wait.begin(LOST)
    assert wait.is_over()


def test_pauses_grow_up_to_the_longest(wait, clock):
    pauses = []
    for _ in range(9):
        wait.begin(LOST)
        pauses.append(pause_of(wait, clock))
    assert pauses == [0, 100, 200, 400, 800, 1600, 3200, LONGEST_PAUSE_MS, LONGEST_PAUSE_MS]


@pytest.mark.parametrize("is_better", ["committed", "quiet"])
def test_after_a_commit_or_a_quiet_time_a_loss_is_the_first_again(wait, clock, is_better):
    for _ in range(4):
        wait.begin(LOST)
        pause_of(wait, clock)
    if is_better == "committed":
        wait.end()
    else:
        clock.advance(QUIET_MS + 1)
    wait.begin(LOST)
    assert wait.is_over()


def test_after_the_time_out_of_a_task_it_is_an_error(wait, clock):
    began_ms = clock.monotonic_ms()
    with pytest.raises(ProducerLostError):
        while True:
            wait.begin(LOST)
            pause_of(wait, clock)
    assert TIMEOUT_MS <= clock.monotonic_ms() - began_ms <= TIMEOUT_MS + LONGEST_PAUSE_MS


def test_without_any_patience_the_first_loss_is_no_error_yet(clock):
    impatient = TransactionWait(clock, timeout_ms=0, quiet_ms=QUIET_MS)
    impatient.begin(LOST)
    with pytest.raises(ProducerLostError):
        impatient.begin(LOST)


def test_a_thread_whose_producers_are_all_lost_makes_few_of_them_and_fails_in_the_end(thread_of):
    thread, cluster, broker = thread_of("exactly_once_v2")
    made = []

    def fail(timeout_ms):
        made.append(thread._clock.monotonic_ms())
        raise LOST

    broker.init, broker.is_usable = fail, False
    thread.start()
    with pytest.raises(ProducerLostError):
        while True:
            thread.run_once()
            thread._clock.advance(10)
    assert len(made) < 100 and made[-1] >= thread._config.task_timeout_ms


def test_a_thread_that_loses_a_transaction_now_and_then_goes_on_at_once(thread_of):
    thread, cluster, broker = thread_of("exactly_once_v2")
    thread.start()
    run(thread)
    send = broker.send
    for number in range(5):
        broker.send = lambda record: (_ for _ in ()).throw(LOST)
        cluster.write("in", 0, b"a", b"x")
        thread._clock.advance(thread._config.task_timeout_ms)
        thread.run_once()
        broker.send = send
        run(thread)
        assert cluster.committed_offsets == {INPUT: number + 1}
    assert thread.counts.lost_transactions == 5
