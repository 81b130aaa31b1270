"""The only broker dies and comes back, or is not there yet. Rows F21 and F22: workers wait, stay small, and go on by themselves."""

import json
import time
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path

from tests.e2e.faults.reduced_ledger import events_of, reduced_ledger
from tests.ledger.bench import NODE

AWAY_SECONDS = 60
LATE_SECONDS = 30
RECOVERY_SECONDS = 15
MOST_GROWTH_BYTES = 64 * 2**20


def test_F21_workers_outlive_a_broker_that_is_down_for_a_while(tmp_path):
    with reduced_ledger(tmp_path, records_per_key=400) as ledger:
        began = time.time()
        workers = [ledger.started(), ledger.started()]
        ledger.wait_until_running(began)
        ledger.bench.write_in_background(AWAY_SECONDS + 6)
        _for_seconds(4)
        before = [_resident_bytes(worker) for worker in workers]
        killed = time.time()
        ledger.bench.broker.kill_node(NODE)
        _for_seconds(AWAY_SECONDS)
        assert all(worker.is_running for worker in workers), [worker.tail() for worker in workers]
        growth = [_resident_bytes(worker) - size for worker, size in zip(workers, before, strict=True)]
        ledger.bench.broker.start_node(NODE)
        back = time.time()
        ledger.bench._writer.join(60)
        ledger.bench.wait_until_caught_up(RECOVERY_SECONDS)
        print(f"caught up {time.time() - back:.1f} s after the broker was back; workers grew by {growth} bytes")
        ledger.finish()
        assert max(growth) < MOST_GROWTH_BYTES
        for worker in workers:
            begin, end = _said_of_the_broker(worker)
            assert (begin["event"], end["event"]) == ("broker does not answer", "broker answers again")
            assert AWAY_SECONDS - 5 <= end["away_ms"] / 1000 <= back - killed + RECOVERY_SECONDS


def test_F22_workers_wait_for_a_broker_that_comes_later(tmp_path):
    with reduced_ledger(tmp_path) as ledger:
        ledger.bench.broker.kill_node(NODE)
        workers = [ledger.started("--http", "127.0.0.1:0"), ledger.started("--http", "127.0.0.1:0")]
        _for_seconds(LATE_SECONDS)
        assert all(worker.is_running for worker in workers), [worker.tail() for worker in workers]
        for worker in workers:
            (said,) = _said_of_the_broker(worker)
            assert said["event"] == "broker does not answer" and said["detail"], said
            status, ready = _readiness(worker)
            assert (status, ready["ok"]) == (503, False)
            assert ready["reason"].startswith(f"not started yet: waiting for the broker: {said['doing']}, for "), ready
            assert _metric(worker, "streamfleet_broker_outages_total") == 1
            assert _metric(worker, "streamfleet_broker_away_seconds") >= LATE_SECONDS - 10
        ledger.bench.broker.start_node(NODE)
        ledger.wait_until_running(time.time() - LATE_SECONDS)
        ledger.write_rest()
        ledger.bench.wait_until_caught_up()
        assert [_readiness(worker)[0] for worker in workers] == [200, 200]
        assert [_metric(worker, "streamfleet_broker_away_seconds") for worker in workers] == [0, 0]
        ledger.finish()


def _for_seconds(seconds):
    """The length of the outage is the fault itself."""
    time.sleep(seconds)


def _said_of_the_broker(worker):
    """All that is not for debugging, in order."""
    lines = [e for e in worker.events() if e.get("level") in ("warning", "error")]
    print(worker.name, Counter(line["event"] for line in lines))
    return [line for line in lines if line["event"].startswith("broker ")]


def _metric(worker, name):
    (door,) = events_of(worker, "http door open")
    with urllib.request.urlopen(f"{door['url']}/metrics", timeout=5) as answer:
        (line,) = [line for line in answer.read().decode().splitlines() if line.startswith(f"{name} ")]
    return float(line.split()[1])


def _readiness(worker):
    (door,) = events_of(worker, "http door open")
    try:
        with urllib.request.urlopen(f"{door['url']}/readyz", timeout=5) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as answer:
        with answer:
            return answer.code, json.load(answer)


def _resident_bytes(worker):
    status = Path(f"/proc/{worker.process.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024
