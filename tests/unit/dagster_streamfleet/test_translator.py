import re

from hypothesis import given
from hypothesis import strategies as st

from dagster_streamfleet.translator import owner, segment, tag_value


@given(st.text(min_size=1, max_size=100))
def test_every_text_becomes_a_name_a_tag_and_an_owner_that_dagster_takes(text):
    assert re.fullmatch(r"[A-Za-z0-9_]+", segment(text))
    assert re.fullmatch(r"[A-Za-z0-9_.-]{1,63}", tag_value(text))
    assert owner(text).startswith("team:") or "@" in owner(text)


def test_a_dash_becomes_an_underscore_and_nothing_more():
    assert segment("order-enrichment") == "order_enrichment"


@given(st.text("ab-_. ", min_size=1, max_size=6), st.text("ab-_. ", min_size=1, max_size=6))
def test_texts_that_differ_get_names_that_differ_unless_only_dash_and_underscore_do(one, other):
    if one.replace("-", "_") != other.replace("-", "_"):
        assert segment(one) != segment(other)


def test_an_address_is_an_owner_as_it_is_and_a_word_is_a_team():
    assert owner("ann@example.org") == "ann@example.org"
    assert owner("payments") == "team:payments"
