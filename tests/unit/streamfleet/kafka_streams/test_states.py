"""The life of a KafkaStreams client: what may follow what, and nothing else."""

import itertools
import sys
import threading
from types import SimpleNamespace

import pytest

import streamfleet as sf
from streamfleet.kafka_streams.states import TRANSITIONS, ClientState, checked_transition
from streamfleet.state.state_directory import StateDirectory

CREATED, REBALANCING, RUNNING, PENDING_SHUTDOWN, NOT_RUNNING, PENDING_ERROR, ERROR = ClientState

ALLOWED = {
    (CREATED, REBALANCING),
    (CREATED, NOT_RUNNING),  # closed before it was started
    (CREATED, PENDING_ERROR),
    (REBALANCING, RUNNING),
    (REBALANCING, PENDING_SHUTDOWN),
    (REBALANCING, PENDING_ERROR),
    (RUNNING, REBALANCING),
    (RUNNING, PENDING_SHUTDOWN),
    (RUNNING, PENDING_ERROR),
    (PENDING_SHUTDOWN, NOT_RUNNING),
    (PENDING_SHUTDOWN, PENDING_ERROR),  # a thread could not be closed
    (PENDING_ERROR, ERROR),
}


def test_every_state_has_its_row_and_those_that_are_over_lead_nowhere():
    assert TRANSITIONS.keys() == set(ClientState)
    assert {state for state in ClientState if not TRANSITIONS[state]} == {s for s in ClientState if s.is_over}


@pytest.mark.parametrize(("current", "target"), list(itertools.product(ClientState, ClientState)))
def test_a_client_moves_as_the_drawing_says(current, target):
    if (current, target) in ALLOWED:
        assert checked_transition(current, target) is target
    else:
        with pytest.raises(sf.StreamsError, match=f"cannot go from {current.value} to {target.value}"):
            checked_transition(current, target)


@pytest.fixture
def client(tmp_path):
    builder = sf.StreamsBuilder()
    builder.stream("in").to("out")
    config = sf.StreamsConfig(application_id="app", bootstrap_servers="nowhere:9", state_dir=tmp_path)
    return sf.KafkaStreams(builder.build(), config)


def test_one_that_was_closed_cannot_be_started(client):
    client.close()
    assert client.state is NOT_RUNNING
    with pytest.raises(sf.StreamsError, match="the app was started already, it is not_running"):
        client.start()


@pytest.mark.parametrize("response", sf.UncaughtResponse)
def test_a_setting_says_what_a_failed_thread_means_unless_there_is_a_handler(client, response):
    chosen = sf.KafkaStreams(client._topology, client.config.with_(uncaught_exception_handler=response.value))
    assert chosen._response_to(ValueError()) is response
    chosen.set_uncaught_exception_handler(lambda _: sf.UncaughtResponse.SHUTDOWN_CLIENT)
    assert chosen._response_to(ValueError()) is sf.UncaughtResponse.SHUTDOWN_CLIENT


def test_a_failed_thread_ends_the_app_here_if_nobody_says_otherwise(client):
    assert client._response_to(ValueError()) is sf.UncaughtResponse.SHUTDOWN_CLIENT


@pytest.mark.parametrize("has_failed", [False, True])
def test_the_listener_hears_every_change_once_with_both_states(client, has_failed):
    heard = []
    client.set_state_listener(lambda new, old: heard.append((old, new)))
    for state in (REBALANCING, RUNNING, RUNNING, REBALANCING):
        client._transition_to(state)
    expected = [(CREATED, REBALANCING), (REBALANCING, RUNNING), (RUNNING, REBALANCING)]
    assert heard == expected
    if has_failed:
        client._end(RuntimeError("a thread failed"))
        client._end(RuntimeError("another one as well"))
        assert str(client.failure) == "a thread failed"
        expected += [(REBALANCING, PENDING_ERROR), (PENDING_ERROR, ERROR)]
    else:
        expected += [(REBALANCING, PENDING_SHUTDOWN), (PENDING_SHUTDOWN, NOT_RUNNING)]
    client.close()
    client.close()
    assert heard == expected


def test_it_runs_when_all_threads_run_and_rebalances_when_one_does_not(client, monkeypatch):
    client._transition_to(REBALANCING)
    for all_running, expected in [(False, REBALANCING), (True, RUNNING), (True, RUNNING), (False, REBALANCING)]:
        monkeypatch.setattr(type(client._threads), "all_running", property(lambda _, now=all_running: now))
        client._next_cleaning_ms = 1 << 62
        client._on_step()
        assert client.state is expected


def test_a_handler_that_calls_sys_exit_ends_the_app_and_not_only_a_thread(client):
    client.set_uncaught_exception_handler(lambda _: sys.exit(1))
    assert client._response_to(ValueError()) is sf.UncaughtResponse.SHUTDOWN_CLIENT


def test_a_thread_that_has_just_begun_to_run_does_not_disturb_an_app_that_is_being_closed(client, monkeypatch):
    client._transition_to(REBALANCING)
    client._next_cleaning_ms = 1 << 62
    monkeypatch.setattr(type(client._threads), "all_running", True)

    class ClosedMeanwhile(threading.Condition):
        """The app is closed when the thread has looked at its state, and before it changes that."""

        def __enter__(self):
            client._state = PENDING_SHUTDOWN
            return super().__enter__()

    monkeypatch.setattr(client, "_changed", ClosedMeanwhile())
    client._on_step()
    assert client.state is PENDING_SHUTDOWN


def test_a_close_that_did_not_wait_long_enough_may_be_called_again(client, monkeypatch):
    client._transition_to(REBALANCING)
    monkeypatch.setattr(client._threads, "join", lambda _: False)
    assert client.close(0.01) is False
    assert client.state is PENDING_SHUTDOWN
    monkeypatch.undo()
    assert client.close() is True
    assert client.state is NOT_RUNNING


def test_a_listener_that_raises_does_not_keep_the_other_threads_running(client, monkeypatch):
    client._transition_to(REBALANCING)
    stopped = []
    monkeypatch.setattr(client._threads, "stop", lambda **_: stopped.append(True))

    def refuse(new, old):
        raise RuntimeError("of the user's own")

    client.set_state_listener(refuse)
    with pytest.raises(RuntimeError, match="of the user's own"):
        client._end(ValueError("a thread failed"))
    assert stopped == [True]


def test_a_global_store_that_cannot_be_closed_is_told_and_holds_nothing_else(client):
    def refuse():
        raise RuntimeError("of the user's own")

    closed = []
    client._directory.lock()
    client._transition_to(REBALANCING)
    client._globals = SimpleNamespace(close=refuse)
    client._wiring = SimpleNamespace(close=lambda: closed.append("clients"))
    assert client.close() is True
    assert (client.state, str(client.failure), closed) == (ERROR, "of the user's own", ["clients"])
    again = StateDirectory(client.config.state_dir, "app")
    again.lock()
    again.unlock()
