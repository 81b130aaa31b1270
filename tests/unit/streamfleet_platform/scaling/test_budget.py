from hypothesis import given
from hypothesis import strategies as st

from streamfleet_platform.scaling.budget import free_slots, over_budget


def test_without_a_budget_everything_is_free():
    assert free_slots(None, {"a": 99}) is None and over_budget(None, {"a": 1}, "a", 1000) is None


def test_what_others_have_is_not_free_and_why_is_said():
    claims = {"a": 2, "b": 3}
    assert free_slots(8, claims) == 3
    assert over_budget(8, claims, "a", 5) is None
    assert over_budget(8, claims, "a", 6) == "6 slots are more than the 5 that the fleet's budget of 8 leaves for app a"
    assert over_budget(8, claims, "new", 4) is not None and over_budget(8, claims, "new", 3) is None


def test_giving_slots_back_is_allowed_also_above_the_budget():
    assert over_budget(3, {"a": 4, "b": 4}, "a", 3) is None and free_slots(3, {"a": 4, "b": 4}) == 0


@given(st.integers(1, 30), st.lists(st.tuples(st.sampled_from("abcd"), st.integers(1, 20)), max_size=30))
def test_whoever_asks_in_whatever_order_growth_never_goes_beyond_the_budget(budget, asked):
    claims = dict.fromkeys("abcd", 1)
    for app, wanted in asked:
        before = sum(claims.values())
        if over_budget(budget, claims, app, wanted) is None:
            claims[app] = wanted
        assert sum(claims.values()) <= max(before, budget)
