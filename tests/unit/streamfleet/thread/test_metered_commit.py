from types import SimpleNamespace

import pytest

from streamfleet.metrics import ThreadCounts
from streamfleet.thread.metered_commit import MeteredCommit

BUSY = SimpleNamespace(commit_needed=True)
IDLE = SimpleNamespace(commit_needed=False)


class Commit:
    def __init__(self, error=None):
        self._error = error
        self.calls = []

    def commit(self, tasks):
        self.calls.append(tasks)
        if self._error is not None:
            raise self._error
        return {"offsets": 1}


def test_a_commit_is_passed_on_and_observed():
    counts, inner = ThreadCounts(), Commit()
    assert MeteredCommit(inner, counts).commit([IDLE, BUSY]) == {"offsets": 1}
    assert inner.calls == [[IDLE, BUSY]]
    assert counts.commit_latency.count == 1


def test_a_commit_with_nothing_to_commit_is_not_counted():
    counts = ThreadCounts()
    MeteredCommit(Commit(), counts).commit([IDLE])
    assert counts.commit_latency.count == 0


def test_a_commit_that_fails_is_counted_as_such_and_raises():
    counts = ThreadCounts()
    with pytest.raises(KeyError):
        MeteredCommit(Commit(KeyError("x")), counts).commit([BUSY])
    assert counts.commit_failures == 1
    assert counts.commit_latency.count == 0
