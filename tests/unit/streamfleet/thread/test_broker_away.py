"""What a StreamThread does with tasks that were cut off in the middle of their records."""

from types import SimpleNamespace

import pytest

import streamfleet as sf
from streamfleet.failpoints import NoFailpoints
from streamfleet.kafka.client_errors import BrokerUnavailableError
from streamfleet.testing import ManualClock
from streamfleet.thread.stream_thread import StreamThread


class Away:
    """A task whose producer takes nothing any more."""

    task_id = "0_0"
    uncommitted_bytes = 0
    commit_requested = False

    def __init__(self, during):
        self.during = during

    def process(self, limit):
        return self._fail("process")

    def punctuate_stream_time(self):
        return self._fail("punctuate")

    def punctuate_wall_clock(self):
        return False

    def _fail(self, at):
        if self.during == at:
            raise BrokerUnavailableError("no room", code="_QUEUE_FULL")
        return 0


@pytest.fixture
def calls():
    return []


@pytest.fixture
def thread_of(calls):
    def build(during):
        noted = lambda name, answer=None: lambda *_, **__: (calls.append(name), answer)[1]
        tasks = SimpleNamespace(
            tasks={},
            running=[Away(during)],
            all_running=True,
            is_restoring=False,
            has_lost_state=False,
            has_room=lambda: True,
            restore=lambda: False,
            processable_records=lambda: 0,
            resume_drained=lambda limit: None,
            abandon=noted("abandon"),
            rewind=noted("rewind"),
            restoring=list,
            offset_sums=dict,
            inputs_of=lambda task: [],
            standbys=SimpleNamespace(raise_limits=lambda now_ms: None),
        )
        thread = StreamThread(
            "t",
            sf.StreamsConfig(application_id="app"),
            tasks,
            SimpleNamespace(poll=lambda: None, can_commit=lambda: True),
            SimpleNamespace(poll_batch=lambda timeout_ms, limit: [], take_events=list),
            SimpleNamespace(commit=noted("commit", {})),
            ManualClock(),
            report=lambda asks: None,
            tasks_of=lambda plan: (),
            fences_of=lambda plan: (),
            asks_for_shutdown=lambda plan: False,
            failpoints=NoFailpoints(),
        )
        thread._write_status = lambda: None
        return thread

    return build


@pytest.mark.parametrize("during", ["process", "punctuate"])
def test_records_that_were_cut_off_half_way_are_read_again_from_the_last_commit(thread_of, calls, during):
    thread = thread_of(during)
    thread.run_once()
    assert calls == ["abandon"]
    thread.tasks.running.clear()
    thread.run_once()
    assert calls == ["abandon", "rewind"]


def test_a_broker_that_stays_away_fails_the_thread_in_the_end(thread_of):
    thread = thread_of("process")
    thread.run_once()
    thread._clock.advance(thread._config.task_timeout_ms)
    with pytest.raises(BrokerUnavailableError):
        thread.run_once()
