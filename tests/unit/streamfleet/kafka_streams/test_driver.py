"""Whatever ends a thread of an app, somebody hears of it: an app that goes on without it would only look alive."""

import threading

import pytest
import structlog

import streamfleet as sf
from streamfleet.kafka_streams.driver import AfterFailure, ThreadDriver
from streamfleet.kafka_streams.wiring import ThreadParts


def end_the_thread():
    raise SystemExit(3)  # as sys.exit(3) does


def rest():
    return 10


class Beside:
    """A membership, or a StateUpdater: is over when the StreamThread is."""

    is_closing = is_stepped_elsewhere = False

    def __init__(self, step):
        self.run_once = step
        self.failure = None
        self.over = False

    def fail(self, error):
        self.failure = error

    def close(self):
        pass


class Stream:
    name = "app-0"
    leaves_for_good = False

    def __init__(self, step, membership, updater):
        self._step, self._membership, self._updater = step, membership, updater
        self.did = []

    def start(self):
        pass

    def run_once(self):
        if self._updater.failure is not None:
            raise self._updater.failure
        self._step()

    def stop(self):
        self.fail()

    def fail(self):
        self.did.append("closed")
        self._membership.over = self._updater.over = True


def failure_of(step=rest, group=rest, restore=rest):
    """What an app is told when one of its three threads ends; the others end with it."""
    membership, updater = Beside(group), Beside(restore)
    thread = Stream(step, membership, updater)
    parts = ThreadParts(thread, membership, threading.Event(), updater, threading.Event())
    heard = []

    def on_failure(error):
        heard.append(error)
        return AfterFailure(lambda: thread.did.append("told"))

    driver = ThreadDriver(parts, lambda: None, on_failure)
    with structlog.testing.capture_logs() as logged:
        driver.start()
        assert driver.join(10)
    assert thread.did == ["closed", "told"]
    assert any(line["event"] == "stream thread failed" for line in logged)
    (failure,) = heard
    return failure


@pytest.mark.parametrize("which", ["step", "group", "restore"])
def test_code_of_the_app_that_ends_its_thread_is_a_failure_like_any_other(which):
    failure = failure_of(**{which: end_the_thread})
    assert isinstance(failure, sf.StreamsError) and "SystemExit(3)" in str(failure)


def test_an_error_is_told_as_it_is():
    def fail():
        raise ValueError("of the user's own")

    assert isinstance(failure_of(step=fail), ValueError)


def test_code_of_the_app_that_closes_it_does_not_wait_for_its_own_thread():
    drivers, waited = [], []

    def close():
        drivers[0].stop()
        waited.append(drivers[0].join(10))

    membership, updater = Beside(rest), Beside(rest)
    stream = Stream(close, membership, updater)
    parts = ThreadParts(stream, membership, threading.Event(), updater, threading.Event())
    drivers.append(ThreadDriver(parts, lambda: None, lambda error: AfterFailure(lambda: None)))
    drivers[0].start()
    assert drivers[0].join(10)
    assert (waited, stream.did, drivers[0].close_failure) == ([False], ["closed"], None)
