"""The life of a KafkaStreams client: what may follow what, and nothing else."""

import itertools

import pytest

import streamfleet as sf
from streamfleet.kafka_streams.states import TRANSITIONS, ClientState, checked_transition

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
