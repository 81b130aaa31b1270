"""A StreamThread whose broker takes nothing any more, at any record it sends: in a batch, in a commit, for either guarantee. Real
tasks, databases and commits, over a pretended cluster; afterwards nothing is missing.
"""

from collections import Counter
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs
from tests.unit.streamfleet.thread.single_thread import CHANGELOG, INPUT, KEYS, OUTPUT, run

import streamfleet as sf
from streamfleet.failpoints import NoFailpoints
from streamfleet.ids import TopicPartition
from streamfleet.kafka.client_errors import BrokerUnavailableError
from streamfleet.kafka.outage import Outage
from streamfleet.metrics import OutageCounts
from streamfleet.thread.stream_thread import StreamThread


def work(thread, cluster):
    thread.start()
    run(thread)
    for at in range(0, len(KEYS), 3):
        for key in KEYS[at : at + 3]:
            cluster.write("in", 0, key.encode(), b"x")
        run(thread)


def last_values(cluster, topic):
    return {key.decode(): int.from_bytes(value, "big") for key, value in cluster.topics[topic]}


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
def test_whatever_record_finds_no_room_nothing_is_lost(thread_of, guarantee):
    thread, cluster, broker = thread_of(guarantee, refused=None)
    work(thread, cluster)
    undisturbed, expected = broker.sent, Counter(KEYS)
    assert last_values(cluster, OUTPUT) == expected
    for refused in range(1, undisturbed + 1):
        thread, cluster, broker = thread_of(guarantee, refused)
        work(thread, cluster)
        assert broker.sent > refused and cluster.committed_offsets == {INPUT: len(KEYS)}
        words = [key.decode() for key, _ in cluster.topics[TopicPartition("words", 0)]]
        counts, logged = last_values(cluster, OUTPUT), last_values(cluster, CHANGELOG)
        if guarantee == "exactly_once_v2":
            assert words == list(KEYS)
            assert counts == logged == expected
        else:
            assert not Counter(KEYS) - Counter(words)
            assert counts == logged and all(counts[key] >= expected[key] for key in expected)


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
def test_a_dead_letter_that_finds_no_room_costs_neither_its_record_nor_those_behind_it(thread_of, guarantee):
    """The first record of a batch is read when it is buffered, before anything is processed."""
    letters = {"deserialization_handler": "continue", "dead_letter_topic": "letters"}
    thread, cluster, _ = thread_of(guarantee, refused=1, **letters)
    thread.start()
    run(thread)
    for key, value in ((b"a", b"\xff"), (b"b", b"x"), (b"c", b"x")):
        cluster.write("in", 0, key, value)
    run(thread, steps=10)
    assert cluster.committed_offsets == {INPUT: 3}
    assert [key for key, _ in cluster.topics[TopicPartition("letters", 0)]] == [b"a"]
    assert [key for key, _ in cluster.topics[TopicPartition("words", 0)]] == [b"b", b"c"]


@pytest.mark.parametrize("is_torn", [True, False])
def test_only_a_step_that_has_torn_a_task_is_not_done_again(is_torn):
    done = []
    tasks = SimpleNamespace(is_torn=is_torn, abandon=lambda: done.append("abandon"))
    thread = bare_thread(tasks, BrokerUnavailableError("no answer", code="_TIMED_OUT"))
    thread.run_once()
    assert done == (["abandon"] if is_torn else [])


def test_a_broker_that_stays_away_fails_the_thread_in_the_end():
    thread = bare_thread(SimpleNamespace(is_torn=False), BrokerUnavailableError("no answer", code="_TIMED_OUT"))
    thread.run_once()
    thread._clock.advance(thread._config.task_timeout_ms)
    with pytest.raises(BrokerUnavailableError):
        thread.run_once()


def test_a_broker_that_stays_away_for_many_steps_is_said_once_and_counted_once():
    counts, is_away = OutageCounts(), True

    def poll():
        if is_away:
            raise BrokerUnavailableError("no answer", code="_TIMED_OUT")

    thread = bare_thread(SimpleNamespace(is_torn=False), poll=poll, outage=Outage(counts))
    thread._step = thread._hear_group
    with capture_logs() as lines:
        for _ in range(20):
            thread.run_once()
            thread._clock.advance(100)
        is_away = False
        for _ in range(3):
            thread.run_once()
    words = [line["event"] for line in lines if line["log_level"] != "debug"]
    assert words == ["broker does not answer", "broker answers again"]
    assert counts.outages == 1


def bare_thread(tasks, error=None, *, poll=None, outage=None):
    """One whose steps end with an error."""

    def fail():
        raise error

    thread = StreamThread(
        "t",
        sf.StreamsConfig(application_id="app"),
        SimpleNamespace(has_room=lambda: True, standbys=None, tasks={}, running=[], **vars(tasks)),
        SimpleNamespace(poll=poll or fail),
        SimpleNamespace(),
        SimpleNamespace(),
        sf.testing.ManualClock(),
        report=lambda asks: None,
        tasks_of=lambda plan: (),
        fences_of=lambda plan: (),
        asks_for_shutdown=lambda plan: False,
        failpoints=NoFailpoints(),
        outage=outage,
    )
    thread._write_status = lambda: None
    return thread
