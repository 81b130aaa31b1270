"""User code that raises, is slow, eats all memory, or fails on the same record for ever. Rows F11 to F14."""

import time

from tests.e2e.faults.reduced_ledger import (
    FAILED,
    ends_with,
    events_of,
    failure_of,
    reduced_ledger,
    runs_an_input,
    wait_for,
)
from tests.ledger import topics
from tests.ledger.app import INPUT
from tests.ledger.bench import APPLICATION, AT_LEAST_ONCE
from tests.ledger.stints import Disturbance

from streamfleet.ids import TopicPartition

DEAD_LETTERS = "ledger-dead-letters"
REPLACE = ("--setting", "uncaught.exception.handler=replace_thread")


def test_F11_an_error_that_does_not_come_back_costs_one_thread(tmp_path):
    with reduced_ledger(tmp_path) as ledger:
        bad = ledger.records[len(ledger.records) // 2]
        worker = ledger.started("--user-fault", f"raise_once:{bad.value}", *REPLACE)
        ledger.write_rest(seconds=2)
        ledger.finish()
        assert len(events_of(worker, "stream thread is replaced")) == 1


def test_F11_an_error_ends_the_worker_and_names_the_record(tmp_path):
    with reduced_ledger(tmp_path) as ledger:
        bad = ledger.records[len(ledger.records) // 2]
        worker = ledger.doomed("--user-fault", f"raise:{bad.value}")
        ledger.write_rest()
        ends_with(worker, FAILED)
        assert _place_of(ledger, bad) in failure_of(worker)
        worker.start()
        ledger.finish()


def test_F11_records_of_one_key_are_left_out_and_become_dead_letters_if_so_declared(tmp_path):
    with reduced_ledger(tmp_path) as ledger:
        topics.create_topics(ledger.bench.bootstrap, [DEAD_LETTERS], 1)
        key = ledger.records[0].key
        bad = [record for record in ledger.records if record.key == key][5:25]
        faults = [option for record in bad for option in ("--user-fault", f"raise:{record.value}")]
        worker = ledger.started(*faults, "--processing", "continue", "--dead-letters", DEAD_LETTERS)
        ledger.write_rest(seconds=1)
        ledger.finish_with([record for record in ledger.records if record not in bad], incomplete={key})
        assert _dead_letters(ledger) == sorted(ledger.offset_of(record) for record in bad)
        assert len(events_of(worker, "record dropped after a processing error")) == len(bad)


def test_F12_a_slow_operator_loses_its_task_stays_out_while_it_is_slow_and_joins_again_once(tmp_path):
    with reduced_ledger(tmp_path) as ledger:
        began = time.time()
        other = ledger.started()
        ledger.wait_until_running(began)
        slow = ledger.started(*_sleeps_in_any_partition(ledger, 20), "--max-poll-interval-ms", "3000")
        wait_for(lambda: runs_an_input(slow), "the second worker has an input")
        ledger.write_some(0.8)
        wait_for(lambda: events_of(slow, "user fault acts"), "the slow record is reached")
        asleep = time.time()
        wait_for(lambda: events_of(other, "task running", asleep), "the first worker takes over")
        ledger.bench.wait_until_caught_up(15)
        assert time.time() - asleep < 20, "nobody waited for the slow one"
        wait_for(lambda: events_of(slow, "task running", asleep), "the slow worker has joined again")
        ledger.write_rest()
        ledger.finish()
        (lost,) = _told(slow, "Lost", asleep)
        back = min(event["timestamp"] for event in events_of(slow, "task running", asleep))
        assert asleep + 15 < lost < back, "out for as long as it slept, and told before it was given tasks again"
        assert not [at for at in _told(slow, "Assigned", asleep) if at < lost]
        calls = [at for at in _told(other, "Rebalancing", asleep) if at < lost]
        assert len(calls) == 1, "one rebalance to throw it out, none while it sleeps"


def test_F12_at_least_once_a_slow_operator_writes_nothing_late_when_its_task_runs_elsewhere(tmp_path):
    """Its session would have lasted for longer than it slept: it is its own membership that gave its tasks up."""
    with reduced_ledger(tmp_path, guarantee=AT_LEAST_ONCE) as ledger:
        session = ("--setting", "session.timeout.ms=45000")
        began = time.time()
        other = ledger.started(*session)
        ledger.wait_until_running(began)
        slow = ledger.started(*_sleeps_in_any_partition(ledger, 12), *session, "--max-poll-interval-ms", "3000")
        wait_for(lambda: runs_an_input(slow), "the second worker has an input")
        joined = time.time()
        ledger.write_rest()  # at once, so that much is in hand behind the slow record
        wait_for(lambda: events_of(slow, "user fault acts"), "the slow record is reached")
        asleep = time.time()
        wait_for(lambda: events_of(other, "task running", asleep), "the first worker takes over")
        ledger.bench.wait_until_caught_up(10)
        assert not _told(slow, "Lost", asleep), "it sleeps until all is done"
        wait_for(lambda: events_of(slow, "task running", asleep), "the slow worker has joined again")
        ledger.bench.disturbances.append(Disturbance("pause", int(joined * 1000), int(time.time() * 1000)))
        ledger.finish()


def test_F13_a_worker_without_memory_ends_like_a_killed_one(tmp_path):
    with reduced_ledger(tmp_path) as ledger:
        greedy = ledger.records[len(ledger.records) // 2]
        worker = ledger.doomed("--user-fault", f"hog:{greedy.value}")
        ledger.write_some(0.8)
        status = worker.wait_for_end(60)
        assert status not in (None, 0), f"ended with {status}:\n{worker.tail()}"
        assert events_of(worker, "user fault acts")
        worker.start()
        ledger.write_rest()
        ledger.finish()


def test_F14_a_record_that_fails_again_and_again_is_named_and_holds_up_only_its_partition(tmp_path):
    with reduced_ledger(tmp_path) as ledger:
        poison = next(record for record in ledger.records[len(ledger.records) // 2 :] if record.partition == 0)
        fault = ("--user-fault", f"raise:{poison.value}")
        workers = [ledger.doomed(*fault), ledger.doomed(*fault)]
        ledger.write_rest()
        failures = []

        def started_again_and_again():
            for worker in workers:
                if not worker.is_running:
                    failures.append(failure_of(worker))
                    worker.start(*fault)
                    worker.must_live = False
            return len(failures) >= 5 and _committed(ledger, 1) >= _end(ledger, 1)

        wait_for(started_again_and_again, "five failures, and the other partition is processed", 120)
        assert all(_place_of(ledger, poison) in failure for failure in failures), failures
        assert _committed(ledger, 0) <= ledger.offset_of(poison)
        for worker in workers:
            worker.kill()
            worker.start()
        ledger.finish()


def _told(worker, what, since):
    """When the group told a worker something."""
    return [event["timestamp"] for event in events_of(worker, "group event", since) if event["what"] == what]


def _sleeps_in_any_partition(ledger, seconds):
    """Which partition the worker will have is not known before."""
    later = ledger.records[len(ledger.records) // 2 :]
    values = [next(record for record in later if record.partition == number).value for number in (0, 1)]
    return [option for value in values for option in ("--user-fault", f"sleep:{value}:{seconds}")]


def _place_of(ledger, record):
    return f"topic {INPUT}, partition {record.partition}, offset {ledger.offset_of(record)}"


def _dead_letters(ledger):
    letters = topics.read_topic(ledger.bench.bootstrap, DEAD_LETTERS, 1)
    return sorted(int(dict(letter.headers)["__streams.errors.offset"]) for letter in letters)


def _committed(ledger, partition):
    place = TopicPartition(INPUT, partition)
    return topics.committed_offsets(ledger.bench.bootstrap, APPLICATION, [place]).get(place, 0)


def _end(ledger, partition):
    return sum(record.partition == partition for record in ledger.records)
