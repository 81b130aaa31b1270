"""What a StreamThread says now and then about what it has done."""

import pytest
from structlog.testing import capture_logs

from streamfleet.ids import TaskId
from streamfleet.metrics import ThreadCounts
from streamfleet.thread.summary import Summary


@pytest.fixture
def counts():
    return ThreadCounts()


def said(summary, at_ms):
    with capture_logs() as lines:
        for now_ms in at_ms:
            summary.say_if_due(now_ms, 2)
    return lines


def test_it_is_said_once_per_interval_with_what_was_done_since_the_last(counts):
    counts.add_processed(TaskId(0, 0), 5)
    summary = Summary("app-0", counts, 1000, 10_000)
    counts.add_processed(TaskId(0, 0), 7)
    counts.add_processed(TaskId(1, 0), 2)
    counts.commit_latency.observe(0.1)
    (first,) = said(summary, range(10_000, 11_900, 100))
    assert first == {
        "event": "summary",
        "log_level": "info",
        "thread": "app-0",
        "seconds": 1.0,
        "tasks": 2,
        "processed_records": 9,
        "commits": 1,
        "restored_records": 0,
        "rebalances": 0,
    }
    (second,) = said(summary, [12_000])
    assert (second["processed_records"], second["commits"]) == (0, 0)


def test_below_zero_nothing_is_said(counts):
    assert not said(Summary("app-0", counts, -1, 0), [10**9])


def test_a_clock_that_is_set_back_does_not_silence_it(counts):
    summary = Summary("app-0", counts, 1000, 10**9)
    assert len(said(summary, [0, 500, 1000])) == 2
