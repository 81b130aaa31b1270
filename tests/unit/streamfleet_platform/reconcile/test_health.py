"""What is wrong with an app that runs, over time: by sights that follow one another, without a clock."""

from datetime import timedelta

from tests.unit.streamfleet_platform.reconcile.sights import LOCK, START, STORE, at, seen, spec, task, worker

from streamfleet_platform.operations.seen import InputSeen
from streamfleet_platform.reconcile.health import HealthWatch

PLACE = ("one-in", 2)
BUDGET = {"errors": {"budget": {"rate": 0.01, "window": "1h"}}}


def told(watch, sight, given=None, *, is_left_alone=True):
    return watch.look("one", sight, given or spec(), LOCK, is_left_alone=is_left_alone).told


def reading(now, committed, end, position=0):
    return seen(worker(), now=now, inputs={PLACE: InputSeen(committed, end, position)})


def test_a_committed_offset_that_stands_still_before_records_is_told_with_its_place():
    watch = HealthWatch()
    assert told(watch, reading(START, 10, 20)) == ()
    assert told(watch, reading(at(minutes=5), 10, 30)) == ()
    [text] = told(watch, reading(at(minutes=6), 10, 40))
    assert text == "no progress for 6 m: one-in-2 stands at 10"
    assert told(watch, reading(at(minutes=7), 11, 40)) == ()


def test_an_app_that_has_done_everything_is_well_however_long_nothing_comes():
    watch = HealthWatch()
    for hours in range(5):
        assert told(watch, reading(at(hours=hours), 20, 20)) == ()


def test_a_partition_that_nobody_tells_of_any_more_stands_still():
    watch = HealthWatch()
    told(watch, reading(START, 10, 10))
    other = {("one-in", 0): InputSeen(5, 5, 5)}
    [text] = told(watch, seen(worker(), now=at(minutes=6), inputs=other))
    assert "one-in-2" in text


def test_a_topic_that_begins_far_behind_zero_and_is_empty_is_no_lack_of_progress():
    watch = HealthWatch()
    for minutes in (0, 10, 20):
        assert told(watch, reading(at(minutes=minutes), None, 700, position=700)) == ()
    told(watch, reading(at(minutes=21), None, 701, position=700))
    [text] = told(watch, reading(at(minutes=30), None, 701, position=701))
    assert "stands at 700" in text, "one record came and was never committed"


def test_nothing_is_held_against_an_app_while_an_operation_runs_and_counting_begins_anew():
    watch = HealthWatch()
    told(watch, reading(START, 10, 20))
    assert told(watch, reading(at(minutes=10), 10, 20), is_left_alone=False) == ()
    assert told(watch, reading(at(minutes=11), 10, 20)) == ()
    assert told(watch, reading(at(minutes=17), 10, 20)) != ()


def test_a_restore_beyond_its_bound_is_told_by_task_and_slot():
    watch = HealthWatch()
    restoring = task("1_3", 0, doing="restoring")
    told(watch, seen(worker(), placement=(restoring,)))
    [text] = told(watch, seen(worker(), now=at(minutes=31), placement=(restoring,)))
    assert text.startswith("task 1_3 on slot 0 restores for 31 m")
    moved = task("1_3", 1, doing="restoring")
    assert told(watch, seen(worker(), now=at(minutes=32), placement=(moved,))) == ()


def test_all_members_count_the_same_rebalance_and_a_new_process_counts_anew():
    watch = HealthWatch()
    for number in range(8):
        pair = [worker(slot, rebalances=number) for slot in (0, 1)]
        text = told(watch, seen(*pair, now=at(minutes=number)))
        assert bool(text) == (number > 6)
    assert text == ("7 rebalances within an hour, more than 6",)
    fresh = worker(0, rebalances=90, started=at(minutes=9))
    assert told(watch, seen(fresh, now=at(minutes=9))) == text, "what a new process has counted before is not known"
    assert told(watch, seen(fresh, now=at(minutes=90))) == ()


def test_a_store_that_outgrows_its_bound_is_told_with_its_slot():
    sizes = {STORE: (1, 3 * 2**30)}
    given = spec(state={"stores": {STORE: {"maxBytes": "2Gi"}}})
    [text] = told(HealthWatch(), seen(worker(), largest_stores=sizes), given)
    assert text.startswith("slot 1 has 3") and STORE in text
    assert told(HealthWatch(), seen(worker(), largest_stores=sizes)) == ()


def spent(watch, sight, **more):
    return watch.look("one", sight, spec(**BUDGET), LOCK, is_left_alone=more.get("is_left_alone", True)).spent_budget


def test_an_error_budget_is_spent_by_the_share_of_bad_records_within_its_window():
    watch = HealthWatch()
    assert spent(watch, seen(worker(processed_records=0))) is None
    assert spent(watch, seen(worker(processed_records=1000, bad_records=10), now=at(minutes=1))) is None
    text = spent(watch, seen(worker(processed_records=1100, bad_records=12), now=at(minutes=2)))
    assert text == "12 of 1100 records within 1 h could not be handled, more than 1.00%"
    assert spent(watch, seen(worker(processed_records=1100, bad_records=12), now=at(minutes=70))) is None


def test_one_bad_record_among_few_spends_no_budget_and_an_operation_forgives():
    watch = HealthWatch()
    spent(watch, seen(worker()))
    assert spent(watch, seen(worker(processed_records=3, bad_records=1), now=at(minutes=1))) is None
    assert spent(watch, seen(worker(processed_records=6, bad_records=4), now=at(minutes=2))) is not None
    spent(watch, seen(worker(processed_records=6, bad_records=4), now=at(minutes=3)), is_left_alone=False)
    assert spent(watch, seen(worker(processed_records=7, bad_records=4), now=at(minutes=4))) is None


def test_counts_of_hours_take_little_room():
    watch = HealthWatch()
    for second in range(0, 7200, 2):
        spent(watch, seen(worker(processed_records=second), now=START + timedelta(seconds=second)))
    assert len(watch._apps["one"].processed.history) <= 361
    watch.forget("one")
    assert watch._apps == {}
