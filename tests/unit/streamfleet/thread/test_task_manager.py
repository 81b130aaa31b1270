"""TaskManager: tasks that come, go, and turn from active to copy and back, on real databases and a pretended cluster."""

import shutil

import pytest

import streamfleet as sf
from streamfleet.changelog.listeners import StandbyUpdateListener, StateRestoreListener, SuspendReason
from streamfleet.changelog.progress import UpdateKind
from streamfleet.errors import StateStoreError, StoreDamagedError
from streamfleet.ids import TaskId, TopicPartition
from streamfleet.kafka.client_errors import BrokerUnavailableError, InternalTopicLostError
from streamfleet.kafka.errors import GroupTimeoutError
from streamfleet.state.snapshot import SnapshotManifest, write_snapshot
from streamfleet.task.offsets import CommittedOffset
from streamfleet.task.phases import TaskPhase
from streamfleet.thread.task_manager import WantedTasks

TASK = TaskId(0, 0)
CHANGELOG = TopicPartition("app-counts-changelog", 0)


def lag(member):
    return member.tasks.standbys.progress()[TASK].remaining


def test_a_standby_follows_the_active_task_of_another_process(member):
    first, second = member("first"), member("second")
    first.assign(active=[0])
    second.assign(standby=[0])
    first.process(b"a", b"b", b"a")
    assert lag(second) == 0 and second.updater.progress()[0].positions == {CHANGELOG: 0}
    second.step()
    assert second.count_of("a") == 2
    assert lag(second) == 0 and not second.tasks.tasks


def test_a_standby_becomes_active_with_its_database_open_and_restores_only_the_tail(member, opens):
    first, second = member("first"), member("second")
    first.assign(active=[0])
    second.assign(standby=[0])
    first.process(b"a", b"b")
    second.step()
    first.process(b"a")  # the tail that the standby has not seen
    first.assign(active=[])
    opened = list(opens)
    restored = second.updater._counts.restored_records
    second.assign(active=[0])
    assert opens == opened
    assert second.updater._counts.restored_records - restored == 1
    assert second.tasks.tasks[TASK].phase is TaskPhase.RUNNING
    second.process(b"a")
    assert second.count_of("a") == 3


def test_an_active_task_becomes_a_standby_with_its_database_open(member, opens):
    first, second = member("first"), member("second")
    first.assign(active=[0])
    first.process(b"a")
    opened = list(opens)
    first.assign(standby=[0])
    assert opens == opened and not first.tasks.tasks
    second.assign(active=[0])
    second.process(b"a")
    first.step()
    assert first.count_of("a") == 2
    first.assign(active=[0])
    assert opens.count(first.factory.task_directory(TASK)) == 1
    assert first.count_of("a") == 2


def test_a_task_that_is_still_restored_can_become_a_standby(member, opens):
    first = member("first")
    for number in range(5):
        first.cluster.write(*CHANGELOG, b"k%d" % number, (1).to_bytes(8, "big"))
    first.updater.pause(True)
    first.assign(active=[0])
    first.assign(standby=[0])
    first.updater.pause(False)
    first.step()
    assert first.count_of("k4") == 1 and len(opens) == 1


def test_a_standby_that_is_not_wanted_any_more_is_closed_and_its_state_stays(member):
    first = member("first")
    first.cluster.write(*CHANGELOG, b"a", (7).to_bytes(8, "big"))
    first.assign(standby=[0])
    first.assign()
    assert not first.tasks.standbys.tasks and not first.restore_consumer.positions
    assert list(first.factory.inventory.offset_sums().values()) == [1]
    first.cluster.topics[CHANGELOG].append((b"b", (1).to_bytes(8, "big")))
    first.assign(standby=[0])
    assert first.count_of("a") == 7 and first.updater._counts.restored_records == 2


def test_losing_the_group_drops_active_tasks_and_keeps_copies(member):
    first = member("first")
    first.assign(active=[1], standby=[0])
    first.tasks.drop_all()
    assert not first.tasks.tasks and first.tasks.standbys.tasks
    first.cluster.write(*CHANGELOG, b"a", (7).to_bytes(8, "big"))
    first.step()
    assert first.count_of("a") == 7


def test_warm_ups_are_warm_when_they_are_near_enough(member):
    first = member("first")
    for number in range(20):
        first.cluster.write(*CHANGELOG, b"k%d" % number, (1).to_bytes(8, "big"))
    first.updater.pause(True)
    first.assign(warmup=[0, 1])
    assert first.tasks.standbys.warm(5) == {TaskId(0, 1): 0}  # which has nothing to read
    first.updater.pause(False)
    first.step()
    assert first.tasks.standbys.warm(5).keys() == first.tasks.standbys.warm_ups == {TASK, TaskId(0, 1)}
    assert first.tasks.standbys.wanted == {TASK: UpdateKind.WARMUP, TaskId(0, 1): UpdateKind.WARMUP}
    first.assign(standby=[0])
    assert first.tasks.standbys.warm(5).keys() == first.tasks.standbys.warm_ups == set()


def test_a_corrupted_standby_is_wiped_alone_and_begins_anew(member):
    first = member("first")
    for number in range(4):
        first.cluster.write(*CHANGELOG, b"k%d" % number, (1).to_bytes(8, "big"))
    first.assign(active=[1], standby=[0])
    first.assign(active=[1])
    first.cluster.truncate(*CHANGELOG, 6)
    first.cluster.topics[CHANGELOG] += [(b"new", (1).to_bytes(8, "big"))] * 3
    first.assign(active=[1], standby=[0])
    assert first.count_of("k0") is None and first.count_of("new") == 1
    assert first.tasks.tasks[TaskId(0, 1)].phase is TaskPhase.RUNNING
    assert not first.tasks.has_lost_state  # nobody's active task was concerned


def test_a_corrupted_active_task_is_told_so_that_a_standby_can_take_over(member):
    first = member("first")
    first.assign(active=[0])
    first.process(b"a", b"b")
    first.assign()
    first.cluster.truncate(*CHANGELOG, 5)
    first.cluster.topics[CHANGELOG] += [(b"new", (1).to_bytes(8, "big"))] * 4
    first.assign(active=[0])
    assert first.tasks.has_lost_state


@pytest.mark.parametrize("role", ["active", "standby"])
@pytest.mark.parametrize("first", [6, 9], ids=["shortened", "outgrown"])
def test_a_snapshot_that_its_changelog_does_not_go_on_from_is_taken_over_once(member, tmp_path, role, first):
    manifest = SnapshotManifest(
        application_id="app",
        store="counts",
        partition=0,
        store_number=0,
        changelog=CHANGELOG.topic,
        changelog_topic_id="id",
        changelog_offset=20 if first == 6 else 2,
        files=(),
    )
    write_snapshot(tmp_path / "snapshots", manifest, [(b"old", bytes(8) + (1).to_bytes(8, "big"))])
    one = member("one", state_snapshot_dir=tmp_path / "snapshots")
    one.topic_ids = {CHANGELOG.topic: "id"}
    one.cluster.topics[CHANGELOG] = [(b"new", (1).to_bytes(8, "big"))] * 10
    one.cluster.truncate(*CHANGELOG, first)
    one.assign(**{role: [0]})
    one.step(20)
    assert (one.count_of("old"), one.count_of("new")) == (None, 1)
    assert one.tasks._counts.corrupted_tasks == 1
    assert role == "standby" or one.tasks.all_running


def test_damage_is_not_forgotten_when_the_broker_does_not_answer_before_the_wipe(member):
    one = member("one")
    one.assign(active=[0])
    one.process(b"a")
    assert one.tasks.note_damage(StoreDamagedError("a block is damaged", directory=one.factory.task_directory(TASK)))
    one.tasks.abandon()
    answers = iter([None, BrokerUnavailableError("no answer", code="_TRANSPORT")])

    def check():
        error = next(answers, None)
        if error is not None:
            raise error

    one.check_topics = check
    with pytest.raises(BrokerUnavailableError):
        one.tasks.rewind()
    one.tasks.rewind()
    one.step()
    assert one.tasks._counts.corrupted_tasks == 1 and one.count_of("a") == 1


def raising(error):
    def check():
        raise error

    return check


MADE_ANEW = InternalTopicLostError("internal topics were deleted and created again")
AWAY = BrokerUnavailableError("no answer", code="_TIMED_OUT")


@pytest.mark.parametrize("kind", ["active", "standby"])
def test_state_is_not_wiped_for_a_changelog_that_was_made_anew(member, kind):
    first = member("first")
    first.assign(active=[0])
    first.process(b"a", b"b")
    first.assign()
    first.cluster.topics[CHANGELOG] = []
    first.tasks.assign(WantedTasks(**{kind: frozenset({TASK})}))
    first.check_topics = raising(MADE_ANEW)  # it was, between the assignment and the restore
    with pytest.raises(InternalTopicLostError):
        first.step()
    holder = first.tasks.tasks.get(TASK) or first.tasks.standbys.tasks[TASK]
    assert holder.restore_positions() == {CHANGELOG: 2}


def test_state_that_does_not_fit_is_wiped_when_the_broker_answers_again(member):
    first = member("first")
    first.assign(active=[0])
    first.process(b"a", b"b")
    first.assign()
    first.cluster.topics[CHANGELOG] = []
    first.tasks.assign(WantedTasks(frozenset({TASK})))
    first.check_topics = raising(AWAY)
    for _ in range(2):
        with pytest.raises(BrokerUnavailableError):
            first.step()
    first.check_topics = lambda: None
    first.step()
    assert first.tasks.all_running and first.tasks.tasks[TASK].restore_positions() == {CHANGELOG: None}


def test_topics_are_compared_at_every_assignment_before_anything_is_done(member):
    first = member("first")
    first.assign(active=[0])
    first.process(b"a")
    calls = list(first.commit.calls)
    first.check_topics = raising(MADE_ANEW)
    with pytest.raises(InternalTopicLostError):
        first.assign(active=[1])
    assert first.tasks.tasks.keys() == {TASK} and first.commit.calls == calls


def test_topics_are_compared_before_the_input_goes_on_behind_a_gap(member):
    first = member("first")
    first.assign(active=[0])
    first.check_topics = raising(MADE_ANEW)
    with pytest.raises(InternalTopicLostError):
        first.tasks.go_on_behind_gap(TopicPartition("in", 0), 7)


def test_two_threads_of_a_process_hand_a_task_over_without_touching_it_together(member):
    one, other = member("same"), member("same")
    one.assign(standby=[0])
    other.assign(active=[0])  # its plan came earlier than that of the thread that has the copy
    assert not other.tasks.tasks and other.tasks.owned == {TASK} and not other.tasks.all_running
    one.assign()
    other.step()
    assert other.tasks.tasks[TASK].phase is TaskPhase.RUNNING and other.tasks.all_running


def test_a_copy_that_another_thread_still_has_is_opened_when_it_lets_go(member):
    one, other = member("same"), member("same")
    one.assign(active=[0])
    other.assign(standby=[0])
    assert not other.tasks.standbys.tasks
    one.assign()
    other.step()
    assert TASK in other.tasks.standbys.tasks


def test_the_offset_sums_of_open_tasks_are_how_far_they_are(member):
    first = member("first")
    first.cluster.write(*CHANGELOG, b"a", (7).to_bytes(8, "big"))
    first.assign(active=[1], standby=[0])
    assert first.tasks.offset_sums() == {TaskId(0, 1): 0, TASK: 1}


def test_a_damaged_standby_is_wiped_when_it_is_opened(member):
    first = member("first")
    first.cluster.write(*CHANGELOG, b"a", (7).to_bytes(8, "big"))
    first.assign(standby=[0])
    first.assign()
    directory = first.factory.task_directory(TASK)
    for manifest in directory.glob("MANIFEST*"):
        manifest.unlink()
    first.assign(standby=[0])
    assert first.count_of("a") == 7


def test_a_disk_that_fails_under_a_copy_is_not_hidden(member, monkeypatch):
    first = member("first")
    first.assign(standby=[0])
    task = first.tasks.standbys.tasks[TASK]

    def fails(*_):
        raise StateStoreError("cannot write: no space")

    monkeypatch.setattr(task, "restore", fails)
    first.cluster.write(*CHANGELOG, b"a", (7).to_bytes(8, "big"))
    with pytest.raises(StateStoreError, match="no space"):
        first.step()


class Heard(StateRestoreListener, StandbyUpdateListener):
    def __init__(self):
        self.calls = []

    def on_restore_start(self, partition, store, *_):
        self.calls.append(("restore start", store))

    def on_restore_end(self, partition, store, total):
        self.calls.append(("restore end", store, total))

    def on_update_start(self, partition, store, at):
        self.calls.append(("update start", store, at))

    def on_update_suspended(self, partition, store, at, end, reason):
        self.calls.append(("update suspended", store, at, reason))


def test_listeners_hear_a_promotion_in_order(member):
    heard = Heard()
    first = member("first", heard=heard)
    first.cluster.write(*CHANGELOG, b"a", (7).to_bytes(8, "big"))
    first.assign(standby=[0])
    first.cluster.write(*CHANGELOG, b"b", (7).to_bytes(8, "big"))
    first.assign(active=[0])
    assert heard.calls == [
        ("update start", "counts", 0),
        ("update suspended", "counts", 1, SuspendReason.PROMOTED),
        ("restore start", "counts"),
        ("restore end", "counts", 1),
    ]


def test_state_that_was_removed_by_hand_is_restored(member):
    first = member("first")
    first.assign(active=[0])
    first.process(b"a")
    first.assign()
    shutil.rmtree(first.factory.task_directory(TASK))
    first.assign(active=[0])
    assert first.count_of("a") == 1


def test_on_a_full_disk_tasks_and_copies_stay_ours_and_closed_until_they_are_opened_again(member):
    one = member("one")
    one.assign(active=[0], standby=[1])
    one.process(b"a", b"a")
    one.tasks.standbys.suspend()
    one.tasks.abandon()
    wanted = WantedTasks(active=frozenset({TASK}), standby=frozenset({TaskId(0, 1)}))
    one.tasks.assign(wanted, opens=False)
    assert not one.tasks.tasks and not one.tasks.standbys.tasks
    assert one.tasks.owned == {TASK} and not one.tasks.all_running
    one.tasks.rewind()
    one.step()
    assert one.tasks.all_running and set(one.tasks.standbys.tasks) == {TaskId(0, 1)}
    assert one.count_of("a") == 2


def test_rows_that_a_truncated_changelog_does_not_bring_back_are_counted(member):
    one, two = member("one"), member("two")
    one.assign(active=[0])
    one.process(b"a", b"b", b"c")
    one.assign()
    two.assign(active=[0])
    two.process(b"c", b"d")  # the state of the first is stale now
    two.assign()
    two.cluster.truncate(*CHANGELOG, first=4)
    one.assign(active=[0])
    assert one.tasks.all_running
    assert (one.count_of("a"), one.count_of("b"), one.count_of("c"), one.count_of("d")) == (None, None, None, 1)
    assert one.tasks._counts.lost_rows == 3
    assert one.factory.directory.former_task(*one.factory.state_key(TASK)) is None


def test_input_behind_a_gap_is_committed_although_nothing_follows(member, cluster):
    builder = sf.StreamsBuilder()
    builder.stream("in", offset_reset="earliest").group_by_key().count(store="counts")
    one = member("one", topology=builder.build())
    one.assign(active=[0])
    one.process(b"a")
    cluster.truncate("in", 0, first=3)
    one.tasks.go_on_behind_gap(TopicPartition("in", 0), 1)
    assert one.consumer.position(TopicPartition("in", 0)) == 3
    one.commit.commit(one.tasks.running)
    assert cluster.committed_offsets[TopicPartition("in", 0)] == 3
    assert sum(one.factory.metrics.dropped_records.values()) == 2


def test_input_that_somebody_else_has_committed_was_processed_elsewhere(member, cluster):
    partition = TopicPartition("in", 0)
    one = member("one")
    one.assign(active=[0])
    assert not one.tasks.was_processed_elsewhere(partition, 3)
    cluster.committed_offsets[partition] = 3
    assert not one.tasks.was_processed_elsewhere(partition, 3)
    cluster.committed_offsets[partition] = 4
    assert one.tasks.was_processed_elsewhere(partition, 3)
    assert not one.tasks.was_processed_elsewhere(TopicPartition("in", 9), 3)


# a broker that does not answer half way


class Silent:
    """Stands before the cluster and does not answer the first so many times."""

    def __init__(self, cluster, call, times):
        self.call, self.times, self.answer = call, times, getattr(cluster, call)
        setattr(cluster, call, self)

    def __call__(self, *arguments):
        self.times -= 1
        if self.times >= 0:
            raise GroupTimeoutError("no answer")
        return self.answer(*arguments)


def test_restored_tasks_run_when_the_broker_says_where_their_input_begins(member, cluster):
    first = member("first")
    first.tasks.assign(WantedTasks(frozenset({TASK, TaskId(0, 1)})))
    first.updater.run_once()
    Silent(cluster, "list_offsets", times=2)
    for _ in range(2):
        with pytest.raises(GroupTimeoutError):
            first.tasks.restore()
        assert not first.tasks.all_running
    first.step()
    assert first.tasks.all_running and len(first.consumer.positions) == 2
    first.process(b"a")
    assert first.count_of("a") == 1


def test_a_restored_task_that_waits_for_the_broker_can_be_taken_away(member, cluster):
    first = member("first")
    first.tasks.assign(WantedTasks(frozenset({TASK})))
    first.updater.run_once()
    Silent(cluster, "list_offsets", times=1)
    with pytest.raises(GroupTimeoutError):
        first.tasks.restore()
    first.assign(active=[])
    assert not first.tasks.tasks and not first.tasks.restore()


def test_a_copy_of_a_table_is_kept_warm_when_the_broker_says_how_far_it_was_processed(member, cluster):
    builder = sf.StreamsBuilder()
    text = sf.serdes.string()
    materialized = sf.Materialized("counts", key_serde=text, value_serde=text)
    builder.table("in", key_serde=text, value_serde=text, materialized=materialized).to_stream().to("out")
    config = sf.StreamsConfig(application_id="app", topology_optimization="reuse.ktable.source.topics")
    optimized = builder.build(config)
    first = member("first", topology=optimized)
    cluster.write("in", 0, b"a", b"x")
    cluster.committed_offsets[TopicPartition("in", 0)] = 1
    Silent(cluster, "committed", times=1)
    with pytest.raises(GroupTimeoutError):
        first.assign(standby=[0])
    first.step()
    assert first.count_of("a") == "x"


# repartition topics

SHUFFLE, OTHER_SHUFFLE = (TopicPartition("app-by-value-repartition", partition) for partition in range(2))
PURGE_INTERVAL_MS = 30_000


@pytest.fixture
def purging(member):
    builder = sf.StreamsBuilder()
    builder.stream("in").group_by(lambda _, value: value, name="by-value").count(store="counts")
    first = member("first", topology=builder.build())
    first.cluster.deleted = deleted = []
    first.cluster.delete_records = deleted.append
    return first.tasks, deleted, first.cluster


def committed(**offsets):
    places = {"shuffle": SHUFFLE, "other": OTHER_SHUFFLE, "source": TopicPartition("in", 0)}
    return {places[name]: CommittedOffset(offset) for name, offset in offsets.items()}


def test_what_was_committed_of_repartition_topics_is_deleted_and_not_more(purging):
    tasks, deleted, _ = purging
    tasks.purge(committed(shuffle=5, source=9), 1)
    assert deleted == [{SHUFFLE: 5}]


def test_a_purge_waits_for_its_time_and_takes_what_came_meanwhile(purging):
    tasks, deleted, _ = purging
    tasks.purge(committed(shuffle=5), 1)
    tasks.purge(committed(shuffle=6, other=2), 2)
    tasks.purge(committed(shuffle=7), PURGE_INTERVAL_MS)
    assert deleted == [{SHUFFLE: 5}]
    tasks.purge({}, PURGE_INTERVAL_MS + 1)
    assert deleted[1:] == [{SHUFFLE: 7, OTHER_SHUFFLE: 2}]
    tasks.purge(committed(source=11), 3 * PURGE_INTERVAL_MS)
    assert len(deleted) == 2  # of sources nothing is deleted, and nothing twice


def test_a_purge_that_fails_ends_nothing(purging):
    tasks, deleted, cluster = purging
    cluster.delete_records = lambda before: raising(AWAY)()
    tasks.purge(committed(shuffle=5), 1)
    cluster.delete_records = deleted.append
    tasks.purge(committed(shuffle=8), PURGE_INTERVAL_MS + 1)
    assert deleted == [{SHUFFLE: 8}]
