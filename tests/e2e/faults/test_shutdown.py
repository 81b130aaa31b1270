"""Row F10: a worker is asked to end, asked again, or runs out of time. Committed work stays, the rest is done again."""

import signal
import time

from tests.e2e.faults.reduced_ledger import ends_with, events_of, reduced_ledger, wait_for

DIRTY = 143


def test_F10_a_worker_that_ended_in_good_order_restores_only_what_is_kept_in_memory(tmp_path):
    with reduced_ledger(tmp_path) as ledger:
        began = time.time()
        worker = ledger.started()
        ledger.wait_until_running(began)
        ledger.write_some(0.5)
        assert worker.leave() == 0
        in_memory = ledger.bench.records_kept_in_memory()
        restarted = time.time()
        worker.start()
        ledger.wait_until_running(restarted)
        assert sum(event["records"] for event in events_of(worker, "task restored", restarted)) == in_memory
        ledger.write_rest()
        ledger.finish()


def test_F10_a_second_signal_ends_a_worker_at_once_and_without_loss(tmp_path):
    with reduced_ledger(tmp_path) as ledger:
        worker = _stuck_in_a_record(ledger, "--grace-seconds", "60")
        worker.process.send_signal(signal.SIGTERM)
        wait_for(lambda: events_of(worker, "shutting down"), "the first signal is heard")
        worker.process.send_signal(signal.SIGTERM)
        ends_with(worker, DIRTY, seconds=5)
        _goes_on(ledger, worker)


def test_F10_a_worker_that_cannot_close_in_time_ends_without_a_last_commit(tmp_path):
    with reduced_ledger(tmp_path) as ledger:
        worker = _stuck_in_a_record(ledger, "--grace-seconds", "2")
        worker.process.send_signal(signal.SIGTERM)
        ends_with(worker, DIRTY, seconds=10)
        _goes_on(ledger, worker)


def _stuck_in_a_record(ledger, *options):
    slow = ledger.records[len(ledger.records) // 2]
    worker = ledger.doomed("--user-fault", f"sleep:{slow.value}:120", *options)
    ledger.write_some(0.7)
    wait_for(lambda: events_of(worker, "user fault acts"), "the slow record is reached")
    return worker


def _goes_on(ledger, worker):
    assert events_of(worker, "ended without a last commit")
    worker.start()
    ledger.write_rest()
    ledger.finish()
