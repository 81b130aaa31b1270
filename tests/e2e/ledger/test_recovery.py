"""Recovery figures, printed and bounded."""

import time

import pytest
from tests.ledger.app import SUB_TOPOLOGIES
from tests.ledger.bench import EXACTLY_ONCE, open_bench
from tests.ledger.recovery import measure_takeover, restored_records, running_tasks
from tests.ledger.scenarios import SMALL, WRITE_SECONDS, Scenario, start_fleet

SESSION_SECONDS = 6
IN_A_TRANSACTION = Scenario(("before_end_txn:kill:6",), "restart", peers=1)


@pytest.mark.timeout(300)
def test_a_dead_workers_transaction_is_ended_and_its_tasks_run_elsewhere_soon_after_its_session(capsys):
    with open_bench(SMALL, EXACTLY_ONCE) as bench:
        victim = start_fleet(bench, IN_A_TRANSACTION)
        bench.write_in_background(WRITE_SECONDS)
        victim.must_live = False
        takeover = measure_takeover(bench, victim, bench.fleet.workers[1])
        victim.start()
        assert [str(anomaly) for anomaly in bench.finish()] == []
    with capsys.disabled():
        print(f"\n{takeover}")
    assert takeover.readers_free_seconds < SESSION_SECONDS + 4
    assert takeover.tasks_running_seconds < SESSION_SECONDS + 6


@pytest.mark.timeout(300)
def test_a_restart_with_state_on_disk_restores_only_what_is_kept_in_memory(capsys):
    with open_bench(SMALL, EXACTLY_ONCE) as bench:
        worker = start_fleet(bench, Scenario((), "nothing"))
        bench.write_in_background(WRITE_SECONDS)
        bench.wait_until_caught_up()
        assert worker.leave() == 0
        in_memory = bench.records_kept_in_memory()
        tasks = bench.spec.partitions * SUB_TOPOLOGIES
        restarted = time.time()
        worker.start()
        bench.fleet.wait_for_event("task running", count=tasks, since=restarted, seconds=60)
        seconds = max(e["timestamp"] for e in worker.events() if e.get("event") == "task running") - restarted
        restored = restored_records(worker, restarted)
        assert len(running_tasks(worker)) == tasks
        assert [str(anomaly) for anomaly in bench.finish()] == []
    with capsys.disabled():
        print(
            f"\nrestart with state on disk: all tasks running after {seconds:.2f} s, {restored} records restored, "
            f"{in_memory} of them kept in memory"
        )
    assert restored == in_memory
