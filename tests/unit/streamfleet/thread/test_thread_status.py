"""What a StreamThread tells about its tasks, from a pretended TaskManager and Consumer."""

from types import SimpleNamespace

import pytest

from streamfleet.changelog.progress import TaskProgress, UpdateKind
from streamfleet.ids import TaskId, TopicPartition
from streamfleet.metrics import ThreadCounts
from streamfleet.task.phases import TaskPhase
from streamfleet.thread.thread_status import StatusWriter

WORDS_0 = TopicPartition("words", 0)
WORDS_1 = TopicPartition("words", 1)


class Task:
    uncommitted_bytes = 30
    committed_stores = SimpleNamespace(position={WORDS_0: 4})

    def __init__(self, partition, phase):
        self.task_id = TaskId(0, partition)
        self.phase = phase

    def buffered_records(self, partition):
        return 4


class Consumer:
    def position(self, partition):
        return 10

    def lag_records(self, partition):
        return 3 if partition == WORDS_0 else None


class Tasks:
    def __init__(self):
        self.tasks = {TaskId(0, 1): Task(1, TaskPhase.RUNNING), TaskId(0, 0): Task(0, TaskPhase.RUNNING)}
        self.progress = []
        self.wanted, self.copies = {}, {}

    @property
    def standbys(self):
        return SimpleNamespace(wanted=self.wanted, progress=lambda: self.copies)

    def inputs_of(self, task):
        return [TopicPartition("words", task.task_id.partition)] if task.phase is TaskPhase.RUNNING else []

    def restoring(self):
        return self.progress


@pytest.fixture
def tasks():
    return Tasks()


@pytest.fixture
def writer(tasks):
    return StatusWriter("shop-0", tasks, Consumer())


def test_tasks_are_told_in_order_with_their_inputs(writer):
    status = writer.write("running", 1000)
    assert [task.id for task in status.tasks] == ["0_0", "0_1"]
    assert status.written_at_ms == 1000
    assert status.tasks[0].uncommitted_bytes == 30


def test_what_is_buffered_is_not_processed_yet_so_it_is_lag(writer):
    [first, second] = writer.write("running", 1000).tasks
    assert (first.inputs[0].position, first.inputs[0].lag_records) == (6, 7)
    assert second.inputs[0].lag_records is None


def test_what_a_new_owner_would_go_on_from_is_told_beside_what_is_processed(writer):
    [first, second] = writer.write("running", 1000, leads_group=True).tasks
    assert (first.inputs[0].committed, second.inputs[0].committed) == (5, None)
    assert writer.write("running", 1000, leads_group=True).leads_group


def test_what_tasks_have_done_and_where_the_time_went_are_told(tasks):
    counts = ThreadCounts()
    counts.add_processed(TaskId(0, 1), 100, 0.02)
    counts.activity_seconds["poll"] = 1.5
    counts.commit_latency.observe(0.25)
    status = StatusWriter("shop-0", tasks, Consumer(), counts).write("running", 1000)
    assert [(task.processed_records, task.busy_seconds) for task in status.tasks] == [(0, 0.0), (100, 0.02)]
    assert status.activity_seconds == {"poll": 1.5, "commit": 0.25}


def restoring(tasks, remaining, restored):
    task = tasks.tasks[TaskId(0, 0)]
    task.phase = TaskPhase.RESTORING
    tasks.progress = [TaskProgress(task.task_id, UpdateKind.ACTIVE, remaining, restored, {}, 10 * remaining)]


def test_the_rate_of_a_restore_is_its_mean_and_gives_the_time_left(writer, tasks):
    restoring(tasks, remaining=1000, restored=0)
    assert writer.write("assigned", 0).tasks[0].restore.records_per_second is None
    restoring(tasks, remaining=400, restored=500)
    restore = writer.write("assigned", 2000).tasks[0].restore
    assert restore.records_per_second == 300
    assert restore.eta_seconds == pytest.approx(1.3)
    assert (restore.remaining_records, restore.restored_records, restore.remaining_bytes) == (400, 500, 4000)


def test_a_second_restore_of_a_task_begins_with_no_rate(writer, tasks):
    restoring(tasks, remaining=1000, restored=0)
    writer.write("assigned", 0)
    tasks.progress = []
    writer.write("running", 1000)
    restoring(tasks, remaining=800, restored=0)
    assert writer.write("assigned", 2000).tasks[0].restore.records_per_second is None


def test_copies_tell_their_lag_and_when_they_will_have_caught_up(writer, tasks):
    task_id = TaskId(1, 0)
    tasks.wanted = {task_id: UpdateKind.WARMUP, TaskId(1, 1): UpdateKind.STANDBY}
    tasks.copies = {task_id: SimpleNamespace(remaining=900, restored_records=100)}
    writer.write("running", 0)
    tasks.copies = {task_id: SimpleNamespace(remaining=300, restored_records=700)}
    [warmup, standby] = writer.write("running", 2000).standbys
    assert (warmup.kind, warmup.lag_records, warmup.records_per_second, warmup.eta_seconds) == ("warmup", 300, 300, 1.0)
    assert (standby.id, standby.kind, standby.lag_records) == ("1_1", "standby", None)
