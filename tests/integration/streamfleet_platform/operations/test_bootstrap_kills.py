"""The server is killed before and after every journalled step of a bootstrap: the next one resumes, whatever the job reported."""

from tests.unit.streamfleet_platform.operations.bootstrap_lab import STATES, begin, deployed, finish, now, topics
from tests.unit.streamfleet_platform.simulated_world import Killed, Lab


class Counter:
    """Kills at the nth moment; None: only writes the moments down."""

    def __init__(self, at=None):
        self.at, self.seen = at, []

    def __call__(self, kind, step, moment):
        self.seen.append((step, moment))
        if len(self.seen) - 1 == self.at:
            raise Killed


def run(lab, at=None):
    counter = Counter(at)
    lab.start(failpoint=counter)
    begun = begin(lab, start=True)
    try:
        ended = finish(lab, begun)
    except Killed:
        lab.kill()
        lab.start()
        done = [state for state in STATES if state in now(lab).detail]
        ended = finish(lab, begun, STATES[len(done) :])
    assert ended.state == "succeeded"
    lab.step()
    return lab, counter.seen


def outcome(lab):
    steps = [(step.name, step.state.value) for step in lab.fleet.operation(now(lab).operation).steps]
    return now(lab).state, topics(lab), lab.fleet.app("one").phase, steps, len(lab.pids())


def test_a_server_killed_at_any_step_is_resumed_by_the_next(tmp_path):
    template = deployed(Lab(tmp_path / "template"))
    template.kill()
    whole, moments = run(template.copied(tmp_path / "whole"))
    expected = outcome(whole)
    assert len(moments) >= 30
    for at in range(len(moments)):
        lab, seen = run(template.copied(tmp_path / f"{at}"), at)
        assert outcome(lab) == expected, f"killed at {seen[-1]}"
        lab.server.close()
    whole.server.close()
