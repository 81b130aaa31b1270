"""Faults by name, each once on the ledger app: at every failpoint of the engine, and the broker's absences.

Ids are those of the fault matrix: F01 killed with results sent, F02 flushed, F03 with offsets sent, F04 committed but stores not
written, F06 in a restore, F07 while closing, F15 all workers at once, F21 a broker away for long, F22 absent at start.
"""

import signal
import time

import pytest
from tests.ledger.bench import EXACTLY_ONCE, NODE, open_bench
from tests.ledger.scenarios import SMALL, Scenario, start_fleet
from tests.ledger.workload import generate

from streamfleet.failpoints import FAILPOINTS

ROWS = {
    "after_produce": "F01",
    "after_flush": "F02",
    "after_send_offsets": "F03",
    "after_end_txn": "F04",
    "in_restore_batch": "F06",
    "before_store_close": "F07",
}
ONLY_AT_A_START = ("in_restore_batch", "after_init_txn", "after_assign")
FAULT_SECONDS = 60
WITHOUT_FAULT = Scenario([], "nothing")


def parts(spec, number):
    records = list(generate(spec))
    size = len(records) // number + 1
    return [records[at : at + size] for at in range(0, len(records), size)]


def as_ids(point):
    return f"{ROWS[point]}-{point}" if point in ROWS else point


def ending(point, action):
    """The status of a process that has met its failpoint. A store that cannot be closed is no reason not to leave."""
    if action == "kill":
        return -signal.SIGKILL
    return 0 if point == "before_store_close" else 1


@pytest.mark.timeout(400)
@pytest.mark.parametrize("point", FAILPOINTS, ids=as_ids)
def test_killed_and_failing_at_a_point_of_the_engine(point):
    with open_bench(SMALL, EXACTLY_ONCE) as bench:
        first, second, third, last = parts(bench.spec, 4)
        worker = start_fleet(bench, WITHOUT_FAULT)
        bench.write(first, seconds=1)
        worker.kill()  # so that the next start has something to restore
        for action, records in (("kill", second), ("raise", third)):
            worker.start("--failpoint", f"{point}:{action}:{1 if point in ONLY_AT_A_START else 2}")
            worker.must_live = False
            bench.write(records, seconds=2)
            if point == "before_store_close":
                bench.wait_until_caught_up()
                worker.leave()
            assert worker.wait_for_end(FAULT_SECONDS) == ending(point, action), worker.tail()
        worker.start()
        bench.write(last, seconds=1)
        assert [str(anomaly) for anomaly in bench.finish()] == []


@pytest.mark.timeout(300)
def test_all_workers_killed_at_once_F15():
    with open_bench(SMALL, EXACTLY_ONCE) as bench:
        start_fleet(bench, Scenario([], "nothing", peers=1))
        bench.write_in_background(4)
        time.sleep(2)
        bench.fleet.kill_all()
        for worker in bench.fleet.workers:
            worker.start()
        assert [str(anomaly) for anomaly in bench.finish()] == []


@pytest.mark.timeout(400)
def test_a_broker_that_is_away_for_a_minute_ends_no_worker_F21():
    with open_bench(SMALL, EXACTLY_ONCE) as bench:
        start_fleet(bench, Scenario([], "nothing", peers=1))
        bench.write_in_background(4)
        time.sleep(2)
        bench.broker.kill_node(NODE)
        time.sleep(60)
        assert bench.fleet.note_deaths() == []
        bench.broker.start_node(NODE)
        assert [str(anomaly) for anomaly in bench.finish()] == []


@pytest.mark.timeout(300)
def test_a_broker_that_is_absent_when_a_worker_starts_is_waited_for_F22():
    with open_bench(SMALL, EXACTLY_ONCE) as bench:
        bench.broker.kill_node(NODE)
        worker = bench.fleet.add()
        worker.start()
        time.sleep(20)
        assert worker.is_running
        bench.broker.start_node(NODE)
        bench.write(list(generate(bench.spec)))
        assert [str(anomaly) for anomaly in bench.finish()] == []
