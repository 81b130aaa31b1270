"""While a worker runs, Python looks for garbage seldom, and not among what was there before; afterwards all is as it was."""

import gc

from streamfleet.worker.garbage import looked_for_seldom


class Knot:
    def __init__(self):
        self.itself = self


def test_garbage_is_still_found_but_seldom_and_not_in_what_is_older():
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    with looked_for_seldom(50_000):
        assert gc.get_threshold() == (50_000, *before[1:])
        assert gc.get_freeze_count() > frozen
        Knot()
        assert gc.collect() > 0
    assert (gc.get_threshold(), gc.get_freeze_count()) == (before, 0)


def test_zero_leaves_python_its_ways():
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    with looked_for_seldom(0):
        assert (gc.get_threshold(), gc.get_freeze_count()) == (before, frozen)


def test_a_failure_does_not_leave_it_so():
    before = gc.get_threshold()
    try:
        with looked_for_seldom(50_000):
            raise RuntimeError
    except RuntimeError:
        assert gc.get_threshold() == before
