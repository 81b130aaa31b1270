"""Who may restore how fast."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamfleet_platform.model.fleet_definition import RestoreBudget
from streamfleet_platform.reconcile.restore_budget import TRICKLE_BYTES, Restorer, rates

MB = 1_000_000


def budget(**given):
    return RestoreBudget.model_construct(**({"bytes_per_second": None, "concurrent": None} | given))


def restorer(app, *, priority=0, is_restoring=True, rate=0):
    return Restorer(app, 0, priority, is_restoring, rate)


def test_without_a_budget_nobody_is_limited_and_a_former_limit_is_taken_away():
    none = budget()
    assert rates([restorer("a"), restorer("b", rate=5 * MB)], none) == {("b", 0): 0}


def test_bytes_are_shared_by_priority():
    told = rates([restorer("gold", priority=2), restorer("plain")], budget(bytes_per_second=40 * MB))
    assert told == {("gold", 0): 30 * MB, ("plain", 0): 10 * MB}


def test_only_so_many_at_once_and_the_others_trickle():
    workers = [restorer(name) for name in "abc"]
    told = rates(workers, budget(bytes_per_second=20 * MB, concurrent=2))
    assert told == {("a", 0): 10 * MB, ("b", 0): 10 * MB, ("c", 0): TRICKLE_BYTES}
    unlimited = rates(workers, budget(concurrent=1))
    assert unlimited == {("b", 0): TRICKLE_BYTES, ("c", 0): TRICKLE_BYTES}, "whose turn it is has no limit"


def test_who_may_begin_before_the_next_pass_begins_with_a_share():
    workers = [restorer("a"), restorer("idle", is_restoring=False)]
    assert rates(workers, budget(bytes_per_second=20 * MB))["idle", 0] == 10 * MB


@pytest.mark.parametrize(("now", "is_told"), [(10 * MB, False), (10_500_000, False), (12 * MB, True), (0, True)])
def test_a_rate_is_sent_again_only_if_it_differs(now, is_told):
    told = rates([restorer("a", rate=now)], budget(bytes_per_second=10 * MB))
    assert bool(told) == is_told


@given(
    workers=st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=30),
    limit=st.integers(1, 10**9),
    concurrent=st.none() | st.integers(1, 9),
)
def test_those_that_restore_never_get_more_than_the_budget_but_for_the_trickle(workers, limit, concurrent):
    given = [restorer(f"a{n}", priority=p, is_restoring=busy) for n, (p, busy) in enumerate(workers)]
    told = rates(given, budget(bytes_per_second=limit, concurrent=concurrent))
    restoring = [told[one.app, 0] for one in given if one.is_restoring]
    assert all(rate > 0 for rate in restoring)
    assert sum(rate for rate in restoring if rate > TRICKLE_BYTES) <= limit
