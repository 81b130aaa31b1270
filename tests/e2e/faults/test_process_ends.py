"""Workers that end, or fall silent, at the worst moment. Rows F02, F03 and F06 to F08; F01, F04 and F15 are with the quick ones."""

import time

import pytest
from tests.e2e.faults.reduced_ledger import KILLED, TASKS, ends_with, events_of, reduced_ledger, runs_an_input, wait_for


@pytest.mark.parametrize("point", ["after_flush", "after_send_offsets", "before_end_txn"])
def test_F02_F03_a_transaction_whose_owner_was_killed_is_aborted_by_the_next_one(point, tmp_path):
    with reduced_ledger(tmp_path) as ledger:
        began = time.time()
        ledger.started()
        ledger.wait_until_running(began)
        victim = ledger.doomed("--failpoint", f"{point}:kill:4")
        wait_for(lambda: runs_an_input(victim), "the victim has an input")
        ledger.write_until_it_ends(victim)
        ends_with(victim, KILLED)
        ledger.write_rest()
        # The other one does all of it alone; the dead owner never comes back.
        ledger.finish()


def test_F06_a_restore_that_is_killed_twice_goes_on_where_it_was_and_never_goes_back(tmp_path):
    # So much state that databases write files while they are restored: without those a kill takes everything back.
    with reduced_ledger(tmp_path, keys=100, records_per_key=150) as ledger:
        first = ledger.started()
        ledger.write_some(0.9, seconds=10)
        ledger.bench.wait_until_caught_up()
        assert first.leave() == 0
        victim = ledger.worker()
        for _ in range(2):
            _killed_while_it_restores(victim)
        victim.start()
        ledger.write_rest()
        ledger.finish()
        left = {}
        for event in events_of(victim, "restoring task"):
            left.setdefault(event["task"], []).append(event["records_at_most"])
        assert len(left) == TASKS and min(len(attempts) for attempts in left.values()) >= 3, left
        assert all(attempts == sorted(attempts, reverse=True) for attempts in left.values()), left
        for before, after in ((0, 1), (1, 2)):
            assert any(attempts[before] > attempts[after] > 0 for attempts in left.values()), left


def _killed_while_it_restores(victim):
    """With a restore so slow that the kill meets it, as soon as rows of it are on the disk."""
    before = _written_files(victim)
    slowly = ("restore.rate.limit.bytes.per.second=1000000", "rocksdb.memory.max.bytes=4194304")
    began = time.time()
    victim.start(*(word for setting in slowly for word in ("--setting", setting)))
    wait_for(lambda: _written_files(victim) > before, "restored rows are on the disk")
    victim.kill()
    assert len(events_of(victim, "task restored", began)) < TASKS, "it had restored everything"


def _written_files(worker):
    """As the databases say in their logs: a file that is there may be written still, and is nothing then after a kill."""
    return sum(
        log.read_text("utf-8", "replace").count("flush_finished") for log in worker.state_directory.rglob("LOG*")
    )


def test_F07_a_kill_while_tasks_are_given_up_loses_nothing(tmp_path):
    with reduced_ledger(tmp_path) as ledger:
        began = time.time()
        victim = ledger.doomed("--failpoint", "before_store_close:kill:2")
        ledger.wait_until_running(began)
        ledger.write_some(0.5)
        other = ledger.started()
        ends_with(victim, KILLED)
        assert len(events_of(victim, "task closed")) == 1
        wait_for(lambda: len(events_of(other, "task running")) >= TASKS, "the other worker has all tasks")
        ledger.write_rest()
        ledger.finish()


def test_F07_a_kill_while_the_worker_closes_loses_nothing(tmp_path):
    with reduced_ledger(tmp_path) as ledger:
        began = time.time()
        victim = ledger.doomed("--failpoint", "before_store_close:kill:2")
        ledger.wait_until_running(began)
        ledger.write_some(0.5)
        assert victim.leave() == KILLED
        victim.start()
        ledger.write_rest()
        ledger.finish()


def test_F08_a_worker_that_was_stopped_past_its_session_is_fenced_and_joins_again(tmp_path):
    with reduced_ledger(tmp_path) as ledger:
        _two_workers_one_of_them_silent(ledger, lambda zombie: zombie.stop())


def test_F08_a_worker_that_was_stopped_in_a_commit_does_not_finish_it_later(tmp_path):
    with reduced_ledger(tmp_path) as ledger:
        _two_workers_one_of_them_silent(ledger, _until_it_stops_itself, "--failpoint", "after_flush:stop:3")


def _two_workers_one_of_them_silent(ledger, stop, *options):
    began = time.time()
    other = ledger.started()
    ledger.wait_until_running(began)
    zombie = ledger.started(*options)
    wait_for(lambda: runs_an_input(zombie), "the second worker has an input")
    ledger.write_some(0.5, seconds=3)
    stop(zombie)
    stopped = time.time()
    ledger.write_some(0.8)
    wait_for(lambda: events_of(other, "task running", stopped), "the first worker takes over")
    ledger.bench.wait_until_caught_up()  # while the zombie is silent, and what it had open is aborted
    zombie.resume()
    wait_for(lambda: _has_lost_its_tasks(zombie, stopped), "the zombie is told")
    wait_for(lambda: events_of(zombie, "task running", stopped), "the zombie has joined again")
    ledger.write_rest(seconds=1)
    ledger.finish()


def _until_it_stops_itself(zombie):
    wait_for(lambda: events_of(zombie, "failpoint acts"), "the second worker stops itself")
    zombie.is_stopped = True


def _has_lost_its_tasks(zombie, since):
    told = [event for event in events_of(zombie, "group event", since) if event["what"] == "Lost"]
    return told or events_of(zombie, "tasks migrated", since)
