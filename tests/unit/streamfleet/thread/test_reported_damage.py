"""Damage that somebody who only reads has found: the StreamThread wipes and restores the task, as if processing had met it."""

import pytest
from tests.unit.streamfleet.thread.conftest import Cluster, Member, OneMember

from streamfleet.errors import StoreDamagedError
from streamfleet.failpoints import NoFailpoints
from streamfleet.ids import TaskId
from streamfleet.kafka.client_errors import BrokerUnavailableError
from streamfleet.state.state_directory import StateDirectory
from streamfleet.thread.stream_thread import StreamThread
from streamfleet.thread.task_manager import WantedTasks

TASK = TaskId(0, 0)


@pytest.fixture
def member(tmp_path):
    directory = StateDirectory(tmp_path, "app")
    directory.path.mkdir(parents=True)
    member = Member(Cluster(), directory)
    yield member
    member.tasks.drop_all()
    member.tasks.close()


@pytest.fixture
def wiped(member, monkeypatch):
    found, wipe = [], type(member.factory).wipe

    def noted(factory, task_id, **options):
        found.append(task_id)
        return wipe(factory, task_id, **options)

    monkeypatch.setattr(type(member.factory), "wipe", noted)
    return found


def thread_with(member, wanted):
    thread = StreamThread(
        "t",
        member.factory.config,
        member.tasks,
        OneMember(),
        member.consumer,
        member.commit,
        member.clock,
        report=lambda asks: None,
        tasks_of=lambda plan: wanted,
        fences_of=lambda plan: (),
        asks_for_shutdown=lambda plan: False,
        failpoints=NoFailpoints(),
    )
    thread.start()
    run(thread, member)
    return thread


def run(thread, member):
    for _ in range(4):
        member.updater.run_once()
        thread.run_once()


def damage(member):
    return StoreDamagedError("a block is damaged", directory=member.factory.task_directory(TASK))


@pytest.fixture
def active(member):
    for _ in range(3):
        member.cluster.write("in", 0, b"a", b"x")
    thread = thread_with(member, WantedTasks(frozenset({TASK})))
    member.clock.advance(member.factory.config.effective_commit_interval_ms)
    run(thread, member)
    return thread


@pytest.fixture
def copying(member):
    member.cluster.write("app-counts-changelog", 0, b"a", (3).to_bytes(8, "big"))
    return thread_with(member, WantedTasks(frozenset(), frozenset({TASK})))


def test_an_active_task_is_wiped_and_has_its_rows_again(active, member, wiped):
    assert member.count_of("a") == 3
    active.report_damage(member.tasks.tasks[TASK], damage(member))
    run(active, member)
    assert wiped == [TASK] and member.tasks.all_running
    assert member.count_of("a") == 3


def test_two_who_find_the_same_wipe_it_once(active, member, wiped):
    task = member.tasks.tasks[TASK]
    active.report_damage(task, damage(member))
    active.report_damage(task, damage(member))
    run(active, member)
    active.report_damage(task, damage(member))  # from a reader of the task that was closed
    run(active, member)
    assert wiped == [TASK]


def test_a_copy_is_wiped_and_has_its_rows_again(copying, member, wiped):
    assert member.count_of("a") == 3
    copy = member.tasks.standbys.tasks[TASK]
    copying.report_damage(copy, damage(member))
    copying.report_damage(copy, damage(member))
    run(copying, member)
    assert wiped == [TASK] and member.tasks.standbys.tasks[TASK] is not copy
    assert member.count_of("a") == 3


def test_a_copy_is_not_forgotten_while_the_broker_does_not_answer(copying, member, wiped):
    def away():
        raise BrokerUnavailableError("no answer", code="_TIMED_OUT")

    member.check_topics = away
    copying.report_damage(member.tasks.standbys.tasks[TASK], damage(member))
    run(copying, member)
    assert not wiped
    member.check_topics = lambda: None
    run(copying, member)
    assert wiped == [TASK]


def test_files_that_are_really_damaged_are_given_up_and_the_rows_come_back(active, member, wiped):
    for number in range(3000):
        member.cluster.write("in", 0, b"key-%060d" % number, b"x")
    while member.count_of(f"key-{2999:060}") is None:
        run(active, member)
    member.clock.advance(member.factory.config.effective_commit_interval_ms)
    run(active, member)
    active.tasks.abandon()  # closed, so that the rows are on the disk
    active.tasks.rewind()
    run(active, member)
    for path in member.factory.task_directory(TASK).glob("*.sst"):
        path.write_bytes(bytes(path.stat().st_size))
    with pytest.raises(StoreDamagedError) as caught:
        list(member.tasks.tasks[TASK].stores["counts"].all())
    active.report_damage(member.tasks.tasks[TASK], caught.value)
    run(active, member)
    assert wiped == [TASK] and member.tasks.all_running
    assert member.count_of("a") == 3 and member.count_of(f"key-{7:060}") == 1
