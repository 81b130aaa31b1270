"""StateUpdater: reads changelogs to where they ended at the start, applies batches, and hands tasks back."""

import threading

import pytest
import structlog

from streamfleet.changelog.listeners import StandbyUpdateListener, StateRestoreListener, SuspendReason, UpdateListeners
from streamfleet.changelog.progress import UpdateKind
from streamfleet.changelog.restore_rate import RestoreRate
from streamfleet.changelog.state_updater import StateUpdater
from streamfleet.errors import StreamsError, TaskCorruptedError
from streamfleet.failpoints import NoFailpoints
from streamfleet.ids import TaskId, TopicPartition
from streamfleet.kafka.client_errors import AccessDeniedError, BrokerUnavailableError, PartitionUnreadableError
from streamfleet.ports import ClientTrouble, OffsetKind, OffsetOutOfRange, PartitionUnavailable
from streamfleet.records import RawRecord

LOG = TopicPartition("app-s-changelog", 0)


class Log:
    """One changelog partition: offsets from `first`; markers are offsets without a record."""

    def __init__(self, last, first=0, markers=(), open_from=None):
        self.first, self.end, self.markers = first, last + 1, set(markers)
        self.open_from = open_from

    @property
    def stable(self):
        """Nothing behind an open transaction can be read."""
        return self.end if self.open_from is None else self.open_from

    def record(self, partition, offset):
        return RawRecord(partition.topic, partition.partition, offset, offset, f"k{offset}".encode(), b"v")


class Broker:
    """Consumer and Admin over Logs, as far as a StateUpdater uses them."""

    def __init__(self, log):
        self.logs = {LOG: log}
        self.positions = {}
        self.paused = set()
        self.events = []
        self.is_away = False
        self.calls = []

    def close(self):
        self.calls.append("close")

    def pause(self, partitions):
        self.paused.update(partitions)

    def resume(self, partitions):
        self.paused.difference_update(partitions)

    def seek(self, partition, offset):
        self.positions[partition] = offset

    def lag_records(self, partition):
        return self.logs[partition].end - self.positions[partition]

    def list_offsets(self, partitions, kind):
        if self.is_away:
            raise BrokerUnavailableError("no answer", code="_TIMED_OUT")
        self.calls.append(kind)
        ends = {OffsetKind.EARLIEST: "first", OffsetKind.HIGH_WATERMARK: "end", OffsetKind.LAST_STABLE: "stable"}
        return {partition: getattr(self.logs[partition], ends[kind]) for partition in partitions}

    def incremental_assign(self, positions):
        self.positions.update(positions)

    def incremental_unassign(self, partitions):
        for partition in partitions:
            self.positions.pop(partition, None)

    def position(self, partition):
        return self.positions[partition]

    def poll_batch(self, timeout_ms, max_records, per_call=3):
        batch = []
        for partition, position in list(self.positions.items()):
            if partition in self.paused:
                continue
            log = self.logs[partition]
            if position < log.first:
                self.events.append(OffsetOutOfRange(partition, position))
                continue
            upto = min(position + per_call, log.stable)
            batch += [log.record(partition, offset) for offset in range(position, upto) if offset not in log.markers]
            self.positions[partition] = upto
        return batch

    def take_events(self):
        events, self.events = self.events, []
        return events


class Clock:
    ms = 0

    def now_ms(self):
        self.ms += 1
        return self.ms


class Task:
    def __init__(self, start=None, source_changelogs=(), log=LOG):
        self.task_id = TaskId(0, log.partition)
        self.log = log
        self.changelog_stores = {log.topic: "s"}
        self.source_changelogs = frozenset(source_changelogs)
        self.start = start
        self.restored, self.offsets = [], []

    def restore_positions(self):
        return {self.log: self.start}

    def restore(self, partition, records, last_offset):
        self.restored += [record.offset for record in records]
        self.offsets.append(last_offset)


def updater_of(broker, **settings):
    return StateUpdater(broker, broker, NoFailpoints(), settings.pop("clock", None) or Clock(), **settings)


def run(updater, steps=20):
    for _ in range(steps):
        updater.run_once()


def restore(log, task, committed=None, steps=20, kind=UpdateKind.ACTIVE, **settings):
    broker = Broker(log)
    updater = updater_of(broker, **settings)
    updater.add(task, kind, committed or {})
    run(updater, steps)
    return broker, updater


def test_everything_is_read_when_nothing_is_here():
    task = Task()
    broker, updater = restore(Log(last=7), task)
    assert task.restored == list(range(8))
    assert updater.take_restored() == [task]
    assert broker.positions == {}


def test_reading_goes_on_behind_the_stored_offset():
    task = Task(start=5)
    restore(Log(last=7), task)
    assert task.restored == [5, 6, 7]


def test_a_task_that_is_up_to_date_is_handed_back_at_once():
    task = Task(start=8)
    broker, updater = restore(Log(last=7), task, steps=1)
    assert updater.is_restoring
    assert updater.take_restored() == [task]
    assert not updater.is_restoring


@pytest.mark.parametrize(("markers", "left"), [((), 7 * 3), ({1, 2}, 7)])
def test_the_bytes_that_are_left_are_estimated_from_those_that_were_read(markers, left):
    broker = Broker(Log(last=9, markers=markers))  # three bytes each; of a compacted log, offsets without records
    updater = updater_of(broker)
    updater.add(Task(), UpdateKind.ACTIVE, {})
    run(updater, 1)
    [progress] = updater.progress()
    assert (progress.remaining, progress.remaining_bytes) == (7, left)


def test_how_many_bytes_are_left_is_not_known_before_something_was_read():
    _, updater = restore(Log(last=7, open_from=0), Task(), steps=1)
    [progress] = updater.progress()
    assert (progress.remaining, progress.remaining_bytes) == (8, None)


def test_the_end_is_that_of_the_start():
    log = Log(last=7)
    broker = Broker(log)
    updater = updater_of(broker)
    task = Task()
    updater.add(task, UpdateKind.ACTIVE, {})
    run(updater, 1)
    log.end = 100
    run(updater, 5)
    assert updater.take_restored() == [task]
    assert task.restored == list(range(8))


def test_markers_at_the_end_are_passed_over():
    task = Task()
    _, updater = restore(Log(last=7, markers={6, 7}), task)
    assert task.restored == list(range(6))
    assert updater.take_restored() == [task]


def test_offsets_are_written_with_every_batch_and_never_go_back():
    task = Task()
    restore(Log(last=10), task)
    assert task.offsets == sorted(set(task.offsets))
    assert task.offsets[-1] == 10


def test_an_input_topic_is_restored_only_as_far_as_it_was_processed():
    task = Task(source_changelogs=[LOG.topic])
    _, updater = restore(Log(last=7), task, committed={LOG: 4})
    assert task.restored == [0, 1, 2, 3]
    assert updater.take_restored() == [task]


def test_a_truncated_changelog_makes_the_task_corrupt():
    task = Task(start=2)
    _, updater = restore(Log(last=9, first=5), task)
    failed, error = updater.take_failed()
    assert failed is task
    assert isinstance(error, TaskCorruptedError)
    assert "goes on from 2" in str(error)
    assert updater.take_restored() == [] and updater.take_failed() is None


def test_a_truncation_is_dealt_with_when_the_broker_answers_again():
    log, task, clock = Log(last=9), Task(), Clock()
    broker, updater = restore(log, task, steps=1, clock=clock)
    log.first = 8
    broker.is_away = True
    run(updater, 2)
    broker.events.clear()  # the client says it once
    broker.poll_batch = lambda *_: []
    assert updater.take_failed() is None
    broker.is_away = False
    run(updater, 1)
    failed, _ = updater.take_failed()
    assert failed is task


def test_a_truncation_that_was_not_dealt_with_is_forgotten_with_its_task():
    log, task = Log(last=9), Task()
    broker, updater = restore(log, task, steps=1)
    log.first = 8
    broker.is_away = True
    run(updater, 1)
    updater.remove([task.task_id])
    again = Task(start=8)
    broker.is_away = False
    updater.add(again, UpdateKind.ACTIVE, {})
    run(updater)
    assert updater.take_restored() == [again] and updater.take_failed() is None


@pytest.mark.parametrize("steps", [0, 1])
def test_a_task_can_be_taken_away_while_it_is_restored(steps):
    task = Task()
    broker, updater = restore(Log(last=50), task, steps=steps)
    updater.remove([task.task_id])
    assert broker.positions == {}
    before = list(task.restored)
    run(updater)
    assert updater.take_restored() == [] and task.restored == before


def test_progress_counts_what_is_left():
    task = Task()
    _, updater = restore(Log(last=9), task, steps=1)
    (progress,) = updater.progress()
    assert (progress.restored_records, progress.remaining) == (3, 7)


# what the two threads leave for each other


def test_a_task_asked_back_before_it_was_claimed_is_never_touched():
    broker = Broker(Log(last=7))
    updater = updater_of(broker)
    task = Task()
    updater.add(task, UpdateKind.ACTIVE, {})
    updater.remove([task.task_id])
    run(updater)
    assert task.restored == [] and not updater.is_restoring


def test_a_restored_task_that_was_asked_back_is_not_handed_out():
    task = Task()
    _, updater = restore(Log(last=2), task)
    updater.remove([task.task_id])
    assert updater.take_restored() == []


def test_with_a_thread_of_its_own_asking_back_waits_for_the_batch_under_way():
    applying, let_go = threading.Event(), threading.Event()

    class SlowTask(Task):
        def restore(self, partition, records, last_offset):
            applying.set()
            assert let_go.wait(10)
            super().restore(partition, records, last_offset)

    broker, task = Broker(Log(last=50)), SlowTask()
    updater = updater_of(broker)
    updater.is_stepped_elsewhere = True
    updater.add(task, UpdateKind.ACTIVE, {})

    def steps():
        while not updater.over:
            updater.run_once()

    stepping = threading.Thread(target=steps)
    stepping.start()
    assert applying.wait(10)
    asking = threading.Thread(target=updater.remove, args=([task.task_id],))
    asking.start()
    asking.join(0.05)
    assert asking.is_alive()
    let_go.set()
    asking.join(10)
    assert not asking.is_alive()
    seen = list(task.restored)
    updater.close()
    stepping.join(10)
    assert task.restored == seen and broker.calls[-1] == "close"


def test_what_ends_the_updater_is_raised_where_its_tasks_are_wanted():
    _, updater = restore(Log(last=50), Task(), steps=1)
    updater.fail(ValueError("boom"))
    with pytest.raises(StreamsError, match="boom"):
        updater.take_restored()


def test_an_updater_that_has_given_a_broker_up_is_not_waited_for():
    """A StreamThread outwaits a BrokerUnavailableError, and nobody restores its tasks any more."""
    _, updater = restore(Log(last=50), Task(), steps=1)
    updater.fail(BrokerUnavailableError("no answer", code="_TIMED_OUT", hint="check the brokers"))
    with pytest.raises(StreamsError, match="restoring was given up: no answer; check the brokers") as caught:
        updater.take_restored()
    assert not isinstance(caught.value, BrokerUnavailableError)


def test_a_failed_updater_holds_nothing_back():
    task = Task()
    _, updater = restore(Log(last=50), task, steps=1)
    updater.is_stepped_elsewhere = True
    updater.fail(ValueError("boom"))
    updater.remove([task.task_id])


def test_an_absent_broker_is_endured_until_the_time_out_of_a_task():
    broker, clock = Broker(Log(last=7)), Clock()
    updater = updater_of(broker, clock=clock, task_timeout_ms=1000)
    task = Task()
    updater.add(task, UpdateKind.ACTIVE, {})
    broker.is_away = True
    run(updater, 5)
    broker.is_away = False
    run(updater)
    assert updater.take_restored() == [task]
    updater.add(task, UpdateKind.ACTIVE, {})
    broker.is_away = True
    updater.run_once()
    clock.ms += 2000
    with pytest.raises(BrokerUnavailableError):
        updater.run_once()


def test_nothing_is_read_while_paused():
    task = Task()
    broker = Broker(Log(last=7))
    updater = updater_of(broker)
    updater.pause(True)
    updater.add(task, UpdateKind.ACTIVE, {})
    run(updater)
    assert task.restored == []
    updater.pause(False)
    run(updater)
    assert updater.take_restored() == [task]


# a changelog that gives nothing


def wait(updater, clock, milliseconds, every_ms=1000):
    for _ in range(milliseconds // every_ms):
        clock.ms += every_ms
        updater.run_once()


def stuck(log, count=None, kind=UpdateKind.ACTIVE, timeout_ms=60_000):
    """A task whose changelog gives nothing behind what it could read; with its clock and what was counted."""
    clock, counted, task = Clock(), [], Task()
    broker, updater = restore(
        log, task, clock=clock, kind=kind, task_timeout_ms=timeout_ms, count_stall=lambda *what: counted.append(what)
    )
    return broker, updater, clock, counted, task


def said(lines, event):
    return [line for line in lines if line["event"] == event]


@pytest.fixture
def logged():
    with structlog.testing.capture_logs() as lines:
        yield lines


def test_an_open_transaction_is_waited_out_for_the_time_out_of_a_task_and_then_named(logged):
    broker, updater, clock, counted, task = stuck(Log(last=9, open_from=4))
    wait(updater, clock, 50_000)
    assert updater.take_failed() is None and task.restored == [0, 1, 2, 3]
    (line,) = said(logged, "partition gives nothing more")
    assert line["position"] == 4 and line["end"] == 10 and line["cause"].endswith("open since offset 4")
    assert counted == [(LOG.topic, "open transaction")]
    wait(updater, clock, 20_000)
    failed, error = updater.take_failed()
    assert failed is task and isinstance(error, PartitionUnreadableError)
    assert (error.partition, error.position, error.end) == (LOG, 4, 10)
    assert f"changelog {LOG} gives nothing from offset 4 of 10 on" in str(error)
    assert "a transaction has been open since offset 4; kafka-transactions.sh" in str(error)
    assert broker.positions == {} and counted == [(LOG.topic, "open transaction")]


def test_a_transaction_that_ends_in_time_is_no_trouble(logged):
    log = Log(last=9, open_from=4)
    broker, updater, clock, counted, task = stuck(log)
    wait(updater, clock, 50_000)
    log.open_from = None
    run(updater)
    assert updater.take_restored() == [task] and task.restored == list(range(10))
    wait(updater, clock, 100_000)
    assert updater.take_failed() is None
    assert len(said(logged, "partition is read on")) == 1


def test_the_clock_begins_again_with_every_record():
    log = Log(last=9, open_from=1)
    broker, updater, clock, _, task = stuck(log)
    for at in range(1, 10):
        log.open_from = at
        wait(updater, clock, 50_000)
    assert updater.take_failed() is None and task.restored == list(range(9))


@pytest.mark.parametrize("how", ["paused", "stood still"])
def test_time_in_which_nothing_could_be_read_does_not_count(how):
    _, updater, clock, _, _ = stuck(Log(last=9, open_from=4))
    if how == "paused":
        updater.pause(True)
        wait(updater, clock, 100_000)
        updater.pause(False)
        run(updater, 1)
    else:
        clock.ms += 1_000_000
        updater.run_once()
    wait(updater, clock, 50_000)
    assert updater.take_failed() is None
    wait(updater, clock, 20_000)
    assert updater.take_failed() is not None


def test_a_slow_rate_is_no_stall():
    clock = Clock()
    rate = RestoreRate(clock, bytes_per_second=1)
    task, log = Task(), Log(last=9)
    _, updater = restore(log, task, clock=clock, rate=rate, task_timeout_ms=1000)
    for _ in range(1000):
        clock.ms += 100
        updater.run_once()
    assert updater.take_failed() is None and updater.take_restored() == [task]


LEADERLESS = PartitionUnavailable(LOG, "LEADER_NOT_AVAILABLE", "Broker: Leader not available")
DAMAGED = PartitionUnavailable(LOG, "_BAD_MSG", "MessageSet at offset 4 failed CRC32C check")
NONSENSE = OffsetOutOfRange(LOG, 7306366917193761389)
"""What librdkafka goes on with behind a damaged record."""


def test_what_the_client_tells_is_said_once_and_is_the_cause_after_the_time_out(logged):
    broker, updater, clock, counted, task = stuck(Log(last=9, open_from=4))
    for _ in range(59):
        broker.events += [LEADERLESS, LEADERLESS]
        wait(updater, clock, 1000)
    assert updater.take_failed() is None
    (line,) = said(logged, "partition cannot be read")
    assert (line["partition"], line["position"], line["code"]) == (str(LOG), 4, "LEADER_NOT_AVAILABLE")
    assert not said(logged, "partition gives nothing more") and counted == [(LOG.topic, "LEADER_NOT_AVAILABLE")]
    wait(updater, clock, 2000)
    failed, error = updater.take_failed()
    assert failed is task and isinstance(error, PartitionUnreadableError)
    assert "Leader not available (LEADER_NOT_AVAILABLE); check the topic, and the broker that leads" in str(error)
    assert OffsetKind.LAST_STABLE not in broker.calls  # the cause was told


def test_a_damaged_record_ends_its_task_at_once_and_wipes_nothing():
    broker, updater, clock, counted, task = stuck(Log(last=9, open_from=4))
    broker.events += [DAMAGED, NONSENSE]
    run(updater, 1)
    failed, error = updater.take_failed()
    assert failed is task and isinstance(error, PartitionUnreadableError)
    assert (error.partition, error.position, error.end) == (LOG, 4, 10)
    assert "from offset 4 of 10 on: MessageSet at offset 4 failed CRC32C check (_BAD_MSG); a record there is" in str(
        error
    )
    assert updater.take_failed() is None and counted == [(LOG.topic, "_BAD_MSG")]


def test_a_copy_with_a_damaged_record_rests_and_keeps_what_it_has(logged):
    log = Log(last=9, open_from=4)
    broker, updater, clock, counted, task = stuck(log, kind=UpdateKind.STANDBY)
    broker.events += [DAMAGED, NONSENSE]
    run(updater, 1)
    log.open_from = None
    wait(updater, clock, 100_000)
    assert updater.take_failed() is None and task.restored == [0, 1, 2, 3]
    assert broker.paused == {LOG} and broker.positions == {LOG: 4}
    assert len(said(logged, "partition cannot be read")) == 1 and counted == [(LOG.topic, "_BAD_MSG")]
    (progress,) = updater.progress()
    assert progress.remaining == 6
    updater.remove([task.task_id], SuspendReason.PROMOTED)
    assert broker.positions == {}


@pytest.mark.parametrize("kind", [UpdateKind.ACTIVE, UpdateKind.STANDBY])
def test_a_changelog_that_may_not_be_read_ends_its_task_at_once(kind):
    broker, updater, clock, counted, task = stuck(Log(last=9, open_from=0), kind=kind)
    denied = PartitionUnavailable(LOG, "TOPIC_AUTHORIZATION_FAILED", "Broker: Topic authorization failed")
    broker.events.append(denied)
    run(updater, 1)
    failed, error = updater.take_failed()
    assert failed is task and isinstance(error, AccessDeniedError)
    assert f"changelog {LOG} may not be read" in str(error) and f"grant READ on topic {LOG.topic}" in str(error)
    assert counted == [(LOG.topic, "TOPIC_AUTHORIZATION_FAILED")] and broker.positions == {}
    broker.events.append(denied)  # of a partition that is nobody's any more
    run(updater, 1)


def test_a_copy_that_cannot_be_read_is_said_and_goes_on(logged):
    log = Log(last=9, open_from=4)
    broker, updater, clock, counted, task = stuck(log, kind=UpdateKind.STANDBY)
    for _ in range(100):
        broker.events.append(LEADERLESS)
        wait(updater, clock, 1000)
    assert updater.take_failed() is None and len(said(logged, "partition cannot be read")) == 1
    log.open_from = None
    run(updater)
    assert task.restored == list(range(10))


def test_a_broker_that_gives_nothing_and_says_nothing_is_named_too():
    broker, updater, clock, counted, task = stuck(Log(last=9, open_from=4))
    broker.logs[LOG] = Log(last=9)
    broker.paused.add(LOG)  # as if
    wait(updater, clock, 70_000)
    _, error = updater.take_failed()
    assert "gives no records, and no transaction is open; check the broker" in str(error)
    assert counted == [(LOG.topic, "no records")]


def test_a_broker_that_is_away_for_a_minute_is_endured(logged):
    broker, updater, clock, counted, task = stuck(Log(last=9, open_from=4), timeout_ms=300_000)
    broker.is_away = True
    for _ in range(60):
        broker.events.append(ClientTrouble("_ALL_BROKERS_DOWN", "1/1 brokers are down"))
        wait(updater, clock, 1000)
    broker.is_away, broker.logs[LOG].open_from = False, None
    run(updater)
    assert updater.take_restored() == [task] and updater.take_failed() is None
    assert len(said(logged, "consumer trouble")) == 1 and counted == [(LOG.topic, "broker away")]


# copies

OTHER = TopicPartition("app-s-changelog", 1)


def test_a_copy_goes_on_reading_behind_the_end_of_the_start():
    log, task = Log(last=7), Task()
    _, updater = restore(log, task, kind=UpdateKind.STANDBY)
    log.end = 12
    run(updater)
    assert task.restored == list(range(12))
    assert updater.take_restored() == [] and not updater.is_restoring


def test_copies_wait_while_an_active_task_is_restored():
    broker = Broker(Log(last=8))
    broker.logs[OTHER] = Log(last=8)
    updater = updater_of(broker)
    copy, active = Task(), Task(log=OTHER)
    updater.add(copy, UpdateKind.STANDBY, {})
    run(updater, 1)
    updater.add(active, UpdateKind.ACTIVE, {})
    run(updater, 2)
    assert len(copy.restored) == 3 and len(active.restored) == 6
    run(updater)
    assert updater.take_restored() == [active]
    assert copy.restored == list(range(9))


def test_a_copy_of_an_input_topic_follows_what_was_processed_and_not_more():
    task = Task(source_changelogs=[LOG.topic])
    _, updater = restore(Log(last=9), task, committed={LOG: 4}, kind=UpdateKind.STANDBY)
    assert task.restored == [0, 1, 2, 3]
    updater.raise_limits({LOG: 7})
    run(updater)
    assert task.restored == list(range(7))
    assert updater.progress()[0].remaining == 0


def test_a_copy_tells_how_far_behind_it_is():
    log, task, clock = Log(last=9), Task(), Clock()
    _, updater = restore(log, task, kind=UpdateKind.WARMUP, steps=1, clock=clock)
    assert updater.progress()[0].remaining == 7
    run(updater)
    log.end = 30
    clock.ms += 1000
    updater.pause(True)
    run(updater, 1)
    (progress,) = updater.progress()
    assert (progress.kind, progress.remaining, progress.offset_sum) == (UpdateKind.WARMUP, 20, 10)


def test_a_copy_whose_changelog_was_truncated_fails_alone():
    log, task = Log(last=9), Task()
    broker, updater = restore(log, task, kind=UpdateKind.STANDBY)
    log.first, log.end = 15, 20
    run(updater)
    failed, error = updater.take_failed()
    assert failed is task and isinstance(error, TaskCorruptedError)
    assert broker.positions == {}


# the rate


def test_the_mean_rate_holds_and_can_be_changed():
    clock = Clock()
    rate = RestoreRate(clock, bytes_per_second=1000)
    log = Log(last=299)
    task = Task()
    broker, updater = restore(log, task, steps=0, clock=clock, rate=rate)
    run(updater, 100)
    spent_ms, applied = clock.ms, len(task.restored)
    bytes_read = sum(len(f"k{offset}") + 1 for offset in task.restored)
    assert applied < 300 and bytes_read <= spent_ms + 20
    assert bytes_read >= 0.9 * spent_ms - 20
    rate.change(0)
    run(updater, 200)
    assert len(task.restored) == 300


# listeners


class Heard(StateRestoreListener, StandbyUpdateListener):
    def __init__(self):
        self.calls = []

    def on_restore_start(self, *what):
        self.calls.append(("start", *what))

    def on_batch_restored(self, *what):
        self.calls.append(("batch", *what))

    def on_restore_end(self, *what):
        self.calls.append(("end", *what))

    def on_restore_suspended(self, *what):
        self.calls.append(("suspended", *what))

    on_update_start, on_batch_loaded, on_update_suspended = on_restore_start, on_batch_restored, on_restore_suspended


def test_listeners_hear_start_batches_and_end_in_order():
    heard = Heard()
    restore(Log(last=4), Task(), listeners=UpdateListeners(restore=heard))
    assert heard.calls == [
        ("start", LOG, "s", 0, 5),
        ("batch", LOG, "s", 2, 3),
        ("batch", LOG, "s", 4, 2),
        ("end", LOG, "s", 5),
    ]


def test_a_restore_that_is_cut_short_is_suspended_not_ended():
    heard, task = Heard(), Task()
    _, updater = restore(Log(last=9), task, steps=1, listeners=UpdateListeners(restore=heard))
    updater.remove([task.task_id])
    assert heard.calls[-1] == ("suspended", LOG, "s", 3)


@pytest.mark.parametrize("reason", list(SuspendReason))
def test_the_listener_of_copies_hears_why_one_is_given_up(reason):
    heard, task = Heard(), Task()
    _, updater = restore(Log(last=4), task, kind=UpdateKind.STANDBY, listeners=UpdateListeners(standby=heard))
    updater.remove([task.task_id], reason)
    assert heard.calls == [
        ("start", LOG, "s", 0),
        ("batch", LOG, "s", task.task_id, 2, 3, 5),
        ("batch", LOG, "s", task.task_id, 4, 2, 5),
        ("suspended", LOG, "s", 5, 5, reason),
    ]


def test_a_listener_that_raises_ends_the_updater():
    class Raising(StateRestoreListener):
        def on_batch_restored(self, partition, store, batch_end_offset, restored_records):
            raise ValueError("boom")

    with pytest.raises(StreamsError, match="on_batch_restored raised.*boom"):
        restore(Log(last=4), Task(), listeners=UpdateListeners(restore=Raising()))


def test_a_limited_batch_is_a_small_part_of_what_a_second_may_read():
    rate = RestoreRate(Clock(), bytes_per_second=10_000)
    assert rate.batch_records(5000) == 2  # nothing is known about the records yet
    rate.pay(100, 5000)
    assert rate.batch_records(5000) == 40
    rate.change(0)
    assert rate.batch_records(5000) == 5000
