import pytest

from streamfleet_platform.observe.restoring import RestoreRates, bytes_per_second


def status(*restores, copies=()):
    """Active tasks with what they restore per second, and copies with their lag and rate."""
    tasks = [{"restore": None if rate is None else {"records_per_second": rate}} for rate in restores]
    return {
        "threads": [{"tasks": tasks, "standbys": [{"lag_records": lag, "records_per_second": r} for lag, r in copies]}]
    }


def test_the_rate_of_one_task_is_remembered_for_when_nothing_restores():
    rates = RestoreRates()
    assert rates.look("one", {0: status(None)}) is None
    assert rates.look("one", {0: status(2000.0, None), 1: status(4000.0)}) == 3000
    assert rates.look("one", {0: status(None)}) == 3000 and rates.look("other", {0: status(None)}) is None


def test_a_warm_up_counts_and_a_copy_that_has_caught_up_does_not():
    rates = RestoreRates()
    assert rates.look("one", {0: status(copies=[(0, 7.0), (500, 1000.0), (None, 9.0)])}) == 1000
    assert 1000 < rates.look("one", {0: status(copies=[(10, 5000.0)])}) < 5000, "the newest counts, and not alone"


def test_a_record_takes_what_the_stores_have_per_record_of_their_changelogs():
    assert bytes_per_second(1000.0, 400_000, 1000, copies=2) == pytest.approx(200_000)
    for unknown in ((None, 1, 1), (1.0, 0, 1), (1.0, 1, 0)):
        assert bytes_per_second(*unknown, copies=1) is None
