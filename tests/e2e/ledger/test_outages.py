"""Everything away at once: all workers, or the broker, for long or from the start."""

import time

import pytest
from tests.ledger.bench import EXACTLY_ONCE, NODE, open_bench
from tests.ledger.scenarios import SMALL, Scenario, start_fleet
from tests.ledger.workload import generate


@pytest.mark.timeout(300)
def test_F15_all_workers_killed_at_once_lose_nothing():
    with open_bench(SMALL, EXACTLY_ONCE) as bench:
        start_fleet(bench, Scenario((), "nothing", peers=1))
        bench.write_in_background(4)
        time.sleep(2)
        bench.fleet.kill_all()
        for worker in bench.fleet.workers:
            worker.start()
        assert [str(anomaly) for anomaly in bench.finish()] == []


@pytest.mark.timeout(400)
def test_F21_a_broker_that_is_away_for_a_minute_ends_no_worker():
    with open_bench(SMALL, EXACTLY_ONCE) as bench:
        start_fleet(bench, Scenario((), "nothing", peers=1))
        bench.write_in_background(4)
        time.sleep(2)
        bench.broker.kill_node(NODE)
        time.sleep(60)
        assert bench.fleet.note_deaths() == []
        bench.broker.start_node(NODE)
        assert [str(anomaly) for anomaly in bench.finish()] == []


@pytest.mark.timeout(300)
def test_F22_a_broker_that_is_absent_when_a_worker_starts_is_waited_for():
    with open_bench(SMALL, EXACTLY_ONCE) as bench:
        bench.broker.kill_node(NODE)
        worker = bench.fleet.add()
        worker.start()
        time.sleep(20)
        assert worker.is_running
        bench.broker.start_node(NODE)
        bench.write(list(generate(bench.spec)))
        assert [str(anomaly) for anomaly in bench.finish()] == []
