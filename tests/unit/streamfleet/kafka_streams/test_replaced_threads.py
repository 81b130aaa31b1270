"""A failed thread is replaced, unless the app ends meanwhile: no thread is started that `close` would not stop."""

import threading

import pytest

import streamfleet as sf
from streamfleet.kafka_streams.thread_pool import ThreadPool


class Driver:
    is_stuck = False

    def __init__(self):
        self.did = []

    def start(self):
        self.did.append("start")

    def stop(self, *, leave_group):
        self.did.append("stop")

    def join(self, timeout_seconds):
        return not self.is_stuck


@pytest.fixture
def made():
    return []


@pytest.fixture
def pool(made):
    def make(_number):
        made.append(Driver())
        return made[-1]

    pool = ThreadPool(make=None, on_step=None, on_failure=None)
    pool._driver = make
    pool.prepare(2)
    pool.start()
    return pool


def test_a_thread_that_fails_while_the_app_is_closed_is_not_replaced(pool, made):
    pool.stop()
    assert pool.replace(0) is False
    with pytest.raises(sf.StreamsError, match="being closed"):
        pool.add()
    assert [driver.did for driver in made] == [["start", "stop"]] * 2


def test_a_thread_that_is_just_being_made_when_the_app_is_closed_is_stopped_too(pool, made):
    is_making, may_go_on = threading.Event(), threading.Event()
    make = pool._driver

    def slowly(number):
        is_making.set()
        assert may_go_on.wait(10)
        return make(number)

    pool._driver = slowly
    replacing = threading.Thread(target=pool.replace, args=(1,))
    closing = threading.Thread(target=pool.stop)
    replacing.start()
    assert is_making.wait(10)
    closing.start()
    may_go_on.set()
    for each in (replacing, closing):
        each.join(10)
    assert [driver.did for driver in (made[0], made[2])] == [["start", "stop"]] * 2
    assert pool.drivers == [made[0], made[2]]


def test_a_removed_thread_that_does_not_stop_keeps_its_number_and_is_waited_for_at_the_end(pool, made):
    made[1].is_stuck = True
    with pytest.raises(sf.StreamsError, match="stream thread 1 did not stop within 0.1 s; it stops behind the record"):
        pool.remove(0.1)
    assert pool.drivers == [made[0]]
    assert pool.add() == 2, "a new one would have the transactional id of the one that still works"
    assert pool.join(0.1) is False
    made[1].is_stuck = False
    assert pool.join(0.1) is True


def test_a_thread_that_was_removed_leaves_its_number(pool):
    assert pool.remove(1) == 1
    assert pool.add() == 1


def client(tmp_path, replace):
    """An app that runs, as far as it knows; `replace` is what becomes of a thread that is to be replaced."""
    builder = sf.StreamsBuilder()
    builder.stream("in").to("out")
    app = sf.KafkaStreams(builder.build(), sf.StreamsConfig(application_id="app", state_dir=tmp_path))
    app.set_uncaught_exception_handler(lambda error: sf.UncaughtResponse.REPLACE_THREAD)
    app._transition_to(sf.ClientState.REBALANCING)
    app._threads.replace = replace
    return app


def test_an_app_whose_thread_cannot_be_replaced_ends_and_says_why(tmp_path):
    def refuse(_number):
        raise sf.StreamsError("no client can be made")

    app = client(tmp_path, refuse)
    app._on_failure(0, ValueError("the first failure")).finish()
    assert app.state is sf.ClientState.ERROR and "no client can be made" in str(app.failure)


def test_a_failure_that_is_not_answered_because_the_app_is_closed_is_not_hidden(tmp_path):
    app = client(tmp_path, lambda number: False)
    after = app._on_failure(0, ValueError("the first failure"))
    app._transition_to(sf.ClientState.PENDING_SHUTDOWN)
    after.finish()
    assert app.state is sf.ClientState.ERROR and isinstance(app.failure, ValueError)
