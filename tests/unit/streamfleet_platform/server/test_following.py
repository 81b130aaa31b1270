"""A branch of a real Git repository is followed, by the real server over a simulated world."""

import subprocess
import threading

import pytest
from sqlalchemy import text
from tests.unit.streamfleet_platform.simulated_world import FLEET, Killed, Lab

from streamfleet_platform.model.operation import OperationKind
from streamfleet_platform.registry import apps


class Repository:
    """Where the lab has its definitions."""

    def __init__(self, lab):
        self._lab = lab
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments):
        who = ["-c", "user.name=ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false"]
        done = subprocess.run(
            ["git", *who, *arguments], cwd=self._lab.source, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def commit(self):
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "a change")
        return self.git("rev-parse", "HEAD")

    def follow(self, apply, every="10s", branch="main"):
        follow = f"  follow: {{branch: {branch}, every: {every}, apply: {apply}}}\n"
        (self._lab.source / "fleet.yaml").write_text(FLEET + follow)


@pytest.fixture
def lab(tmp_path):
    lab = Lab(tmp_path)
    lab.repository, lab.names = Repository(lab), {"second": "two"}
    yield lab
    lab.server.close()


def look(lab, seconds=10):
    lab.clock.advance(seconds)
    lab.server.loop.step()  # the lease is kept
    lab.server.following.step()


def followed(lab):
    with lab.world.database.read() as session:
        return apps.fleet_state(session).followed


def told(lab):
    return [event.message for event in lab.fleet.events(None, 0, 500) if event.kind == "follow"]


def operations(lab):
    return [(operation.app, operation.kind, operation.state) for operation in lab.fleet.operations(None, 50)]


def started(lab, apply="auto"):
    """One app that runs, of a commit that a person applied; its branch is followed from then on."""
    lab.declare("one")
    lab.repository.follow(apply)
    commit = lab.repository.commit()
    lab.start()
    [operation] = lab.apply(ref=commit).operations
    lab.run(operation.id)
    look(lab)
    return commit


def test_nothing_is_followed_unless_the_definitions_in_force_say_so(lab):
    lab.declare("one")
    lab.repository.commit()
    lab.start()
    lab.apply(ref="main")
    lab.declare("two", entry="second")
    lab.repository.follow("auto")  # nobody has applied that yet
    lab.repository.commit()
    look(lab)
    assert followed(lab) == {} and {app for app, _, _ in operations(lab)} == {"one"}


def test_a_new_commit_of_the_branch_is_applied_once_with_the_commit_as_intent(lab):
    started(lab)
    lab.declare("two", entry="second")
    commit = lab.repository.commit()
    look(lab, 3)
    assert len(lab.fleet.apps()) == 1, "it is not time yet"
    look(lab)
    [first] = lab.fleet.operations("two", 10)
    found = lab.fleet.operation(first.id)
    assert (found.intent_id, found.actor, found.kind) == (f"{commit}:two", "git", OperationKind.DEPLOY)
    lab.run(first.id)
    count = len(told(lab))
    for _ in range(3):
        look(lab)
    assert len(lab.fleet.operations("two", 10)) == 1 and len(told(lab)) == count
    assert (followed(lab)["state"], followed(lab)["commit"]) == ("applied", commit)
    assert lab.fleet.fleet().revision == commit


def test_with_plan_a_commit_is_told_once_and_nothing_is_done_until_somebody_applies(lab):
    started(lab, "plan")
    lab.declare("two", entry="second")
    lab.declare("one", entry="rolling")
    lab.repository.commit()
    for _ in range(3):
        look(lab)
    [*_, last] = told(lab)
    assert "waits to be applied: upgrade one, create two" in last and len(told(lab)) == 2
    assert [app.name for app in lab.fleet.apps()] == ["one"] and len(operations(lab)) == 1
    assert {each.app for each in lab.apply().operations} == {"one", "two"}, "without a ref it is the followed branch"


def test_an_invalid_commit_is_told_once_as_event_and_problem_and_never_applied(lab):
    started(lab)
    lab.declare("one", more="nonsense: 1")
    commit = lab.repository.commit()
    for _ in range(3):
        look(lab)
    [*_, last] = told(lab)
    assert last.startswith(f"commit {commit[:12]} of branch main is invalid") and "unknown field 'nonsense'" in last
    assert len([message for message in told(lab) if "invalid" in message]) == 1
    assert len(operations(lab)) == 1 and lab.fleet.fleet().revision != commit
    [problem] = lab.fleet.fleet().problems
    assert "unknown field 'nonsense'" in problem and commit[:12] in problem
    lab.declare("one", more="health: {noProgress: 9m}")
    lab.repository.commit()
    look(lab)
    assert lab.fleet.fleet().problems == () and len(operations(lab)) == 2


def test_a_valid_commit_clears_the_problem_of_the_one_before_also_where_it_is_only_planned(lab):
    started(lab, "plan")
    lab.declare("one", more="nonsense: 1")
    lab.repository.commit()
    look(lab)
    assert lab.fleet.fleet().problems
    lab.declare("one")
    lab.repository.commit()
    look(lab)
    assert lab.fleet.fleet().problems == () and "changes nothing" in told(lab)[-1]


def test_a_branch_that_goes_back_to_an_older_commit_takes_the_fleet_back(lab):
    before = started(lab)
    lab.declare("one", more="health: {noProgress: 9m}")
    after = lab.repository.commit()
    look(lab)
    lab.run(lab.fleet.operations("one", 1)[0].id)
    lab.repository.git("reset", "--quiet", "--hard", before)
    look(lab)
    lab.run(lab.fleet.operations("one", 1)[0].id)
    assert lab.fleet.app("one").revision == before != after
    look(lab)
    assert len(operations(lab)) == 3


def test_what_a_person_applies_by_hand_stands_until_the_branch_moves(lab):
    before = started(lab)
    lab.declare("one", more="health: {noProgress: 9m}")
    lab.repository.commit()
    look(lab)
    lab.run(lab.fleet.operations("one", 1)[0].id)
    [back] = lab.apply(ref=before).operations
    lab.run(back.id)
    for _ in range(3):
        look(lab)
    assert lab.fleet.app("one").revision == before and len(operations(lab)) == 3


def test_an_app_that_is_busy_gets_the_commit_when_it_is_free(lab):
    started(lab)
    busy = lab.operate(OperationKind.SCALE, slots=2)
    lab.declare("one", entry="rolling")
    lab.declare("two", entry="second")
    commit = lab.repository.commit()
    lab.clock.advance(10)
    lab.server.following.step()  # before the loop has its turn
    assert (followed(lab)["state"], followed(lab)["busy"]) == ("waiting", ["one"])
    assert "not one: scale" in told(lab)[-1]
    lab.run(busy.id)
    look(lab)
    assert followed(lab)["state"] == "applied"
    lab.run(lab.fleet.operations("one", 1)[0].id)
    assert lab.fleet.app("one").revision == commit and lab.fleet.app("one").slots == 2
    assert len(lab.fleet.operations("two", 9)) == 1


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_server_that_is_killed_while_it_applies_is_followed_by_one_that_does_it_once(lab, moment):
    started(lab)
    lab.declare("two", entry="second")
    lab.repository.commit()
    apply = lab.fleet.apply

    def dying(*arguments, **named):
        if moment == "after":
            apply(*arguments, **named)
        raise Killed

    lab.fleet.apply = dying
    with pytest.raises(Killed):
        look(lab)
    lab.kill()
    lab.start()
    for _ in range(3):
        look(lab)
    assert len(lab.fleet.operations("two", 9)) == 1 and followed(lab)["state"] == "applied"
    with lab.world.database.read() as session:
        applied = session.execute(text("SELECT count(*) FROM event WHERE kind = 'apply' AND actor = 'git'")).scalar()
    assert applied == 2, "the commit it began with, and the new one"


def test_a_server_that_does_not_lead_follows_nothing(lab):
    started(lab)
    leader, second = lab.server, lab.start(holder="second")
    lab.declare("two", entry="second")
    lab.repository.commit()
    lab.clock.advance(10)
    leader.loop.step()
    second.loop.step()
    second.following.step()
    assert len(lab.fleet.apps()) == 1
    leader.following.step()
    assert len(lab.fleet.apps()) == 2
    leader.close()


def test_a_branch_that_is_not_there_is_a_problem_until_it_is(lab):
    started(lab)
    lab.repository.git("branch", "--move", "main", "other")
    look(lab)
    [problem] = lab.fleet.fleet().problems
    assert "has no branch 'main'" in problem
    lab.repository.git("branch", "--move", "other", "main")
    look(lab)
    assert lab.fleet.fleet().problems == ()


def test_in_a_plain_directory_there_is_nothing_to_follow_and_that_is_said(tmp_path):
    lab = Lab(tmp_path)
    lab.declare("one")
    (lab.source / "fleet.yaml").write_text(FLEET + "  follow: {branch: main}\n")
    lab.start()
    lab.apply()
    look(lab)
    [problem] = lab.fleet.fleet().problems
    assert "plain directory" in problem
    lab.server.close()


def test_the_thread_follows_by_itself_and_ends_with_the_server(lab):
    started(lab)
    lab.declare("two", entry="second")
    lab.repository.commit()
    lab.clock.advance(10)
    lab.server.loop.step()
    applied = lab.fleet.apply
    done = threading.Event()

    def telling(*arguments, **named):
        try:
            return applied(*arguments, **named)
        finally:
            done.set()

    lab.fleet.apply = telling
    lab.server.following.start()
    assert done.wait(30)
    lab.server.following.stop()
    assert {app.name for app in lab.fleet.apps()} == {"one", "two"}
