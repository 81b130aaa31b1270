"""Workers of a small ledger killed in and right after a commit, and all together. Rows F01, F04 and F15; the others take longer."""

import time

from tests.e2e.faults.reduced_ledger import KILLED, ends_with, events_of, reduced_ledger
from tests.ledger.app import STORES

ON_DISK = sum(store.layout != "memory" for store in STORES)


def test_F01_results_of_a_transaction_without_offsets_are_never_seen(tmp_path):
    with reduced_ledger(tmp_path) as ledger:
        began = time.time()
        victim = ledger.doomed("--failpoint", "after_produce:kill:4")
        ledger.wait_until_running(began)
        ledger.write_until_it_ends(victim)
        ends_with(victim, KILLED)
        victim.start()
        ledger.write_rest()
        ledger.finish()


def test_F04_a_store_that_missed_a_commit_is_replayed_from_its_own_offset(tmp_path):
    with reduced_ledger(tmp_path) as ledger:
        worker = ledger.started()
        ledger.write_some(0.5)
        ledger.bench.wait_until_caught_up()
        assert worker.leave() == 0
        few = _records_behind(ledger, 0.55)
        worker.start("--failpoint", "after_end_txn:kill:1")
        worker.must_live = False
        ledger.write_some(0.55)
        ends_with(worker, KILLED)
        in_memory = ledger.bench.records_kept_in_memory()
        restarted = time.time()
        worker.start()
        ledger.write_rest()
        ledger.finish()
        replayed = sum(event["records"] for event in events_of(worker, "task restored", restarted)) - in_memory
        assert 0 < replayed <= few * (ON_DISK + 1), "no more than what the missed commit had; tags change twice"


def test_F15_an_app_whose_workers_are_all_killed_comes_back(tmp_path):
    with reduced_ledger(tmp_path) as ledger:
        began = time.time()
        workers = [ledger.started(), ledger.started()]
        ledger.wait_until_running(began)
        ledger.write_some(0.6, seconds=2)
        for worker in workers:
            worker.kill()
        for worker in workers:
            worker.start()
        ledger.write_rest()
        ledger.finish()


def _records_behind(ledger, share):
    return int(len(ledger.records) * share) - len(ledger.bench.written)
