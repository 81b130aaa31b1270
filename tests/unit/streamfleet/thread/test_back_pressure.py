"""When an input partition is paused: only where its task waits for another input, and late, because a pause costs a fetch. And when
nothing more is processed: what cannot be committed is held in memory.
"""

from tests.unit.streamfleet.thread.single_thread import run

from streamfleet.ids import TaskId, TopicPartition
from streamfleet.thread.task_manager import PAUSE_FACTOR

INPUT = TopicPartition("in", 0)
LIMIT = 5


def filled(member, records):
    own = member()
    own.assign(active=[0])
    for number in range(records):
        own.cluster.write("in", 0, b"%d" % number, b"x")
    return own, own.consumer.poll_batch(0, records)


def test_a_task_that_can_go_on_is_never_paused_and_says_how_much_it_has(member):
    own, records = filled(member, LIMIT * PAUSE_FACTOR + 1)
    own.tasks.add_records(records, LIMIT)
    assert own.consumer.paused == set()
    assert own.tasks.processable_records() == len(records)


def test_a_task_that_waits_is_paused_at_ten_times_the_limit_and_resumed_at_one(member, monkeypatch):
    own, records = filled(member, LIMIT * PAUSE_FACTOR + 1)
    task = own.tasks.tasks[TaskId(0, 0)]
    monkeypatch.setattr(type(task), "is_processable", lambda self: False)
    own.tasks.add_records(records[:-1], LIMIT)
    assert own.consumer.paused == set() and own.tasks.processable_records() == 0
    own.tasks.add_records(records[-1:], LIMIT)
    assert own.consumer.paused == {INPUT}
    monkeypatch.undo()
    while task.buffered_records(INPUT) > LIMIT:
        own.tasks.resume_drained(LIMIT)
        assert own.consumer.paused == {INPUT}
        assert task.process()
    own.tasks.resume_drained(LIMIT)
    assert own.consumer.paused == set()


def test_a_thread_that_cannot_commit_holds_no_more_than_may_be_uncommitted_and_goes_on_with_the_plan(thread_of):
    """A rebalance waits for its slowest member."""
    thread, cluster, _ = thread_of(statestore_uncommitted_max_bytes=2000, statestore_cache_max_bytes=0)
    thread.start()
    run(thread)
    plan_is_there = False
    thread._membership.can_commit = lambda: plan_is_there
    held = []
    for number in range(40):
        cluster.write("in", 0, b"%020d" % number, b"x" * 20)
        run(thread, steps=1)
        held.append(thread.tasks.running[0].uncommitted_bytes)
    assert 2000 < held[-1] < 2300 and held[-1] == held[-10]
    assert cluster.committed_offsets.get(INPUT, 0) == 0
    plan_is_there = True
    run(thread)
    assert cluster.committed_offsets[INPUT] == 40
    assert cluster.end(TopicPartition("words", 0)) == 40
