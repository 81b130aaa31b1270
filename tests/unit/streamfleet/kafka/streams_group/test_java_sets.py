"""The order of Java's hash sets, as Java 17 gave it."""

import pytest

from streamfleet.kafka.streams_group.java_sets import hash_of, hash_of_set, in_set_order

NUMBERED = [f"topic-{n}" for n in range(25)]


@pytest.mark.parametrize(
    ("text", "signed"), [("", 0), ("a", 97), ("orders", -1008770331), ("app-left", 1121416243), ("ü", 252)]
)
def test_the_hash_of_a_text_is_javas(text, signed):
    assert hash_of(text) == signed % 2**32


@pytest.mark.parametrize(
    "in_order",
    [
        ["orders", "customers"],
        ["app-left", "app-right"],
        ["interop-91f035a7-right", "interop-91f035a7-left"],
        ["t10", "t11", "t2", "t3"],
        ["z", "日本", "ü"],
    ],
)
def test_a_set_gives_its_elements_by_bucket(in_order):
    assert in_set_order(sorted(in_order), hash_of) == in_order
    assert in_set_order(sorted(in_order), hash_of, made_for=len(in_order)) == in_order


def test_a_set_that_was_made_for_its_elements_may_have_more_room_than_one_that_grew():
    def numbers(topics):
        return [int(topic.removeprefix("topic-")) for topic in topics]

    some = NUMBERED[:24]
    grown = [6, 7, 8, 9, 0, 1, 2, 20, 3, 10, 21, 4, 11, 22, 5, 12, 23, 13, 14, 15, 16, 17, 18, 19]
    made = [6, 7, 8, 9, 0, 1, 2, 3, 10, 4, 11, 5, 12, 20, 21, 22, 23, 13, 14, 15, 16, 17, 18, 19]
    assert numbers(in_set_order(some, hash_of)) == grown
    assert numbers(in_set_order(some, hash_of, made_for=24)) == made
    assert numbers(in_set_order(NUMBERED, hash_of)) == [*made[:13], 24, *made[13:]]


def test_a_set_of_sets_is_ordered_by_the_sums_of_their_hashes():
    groups = [("left", "right"), ("a", "b"), ("orders", "customers")]
    in_order = [("a", "b"), ("orders", "customers"), ("left", "right")]
    assert in_set_order(groups, hash_of_set, made_for=3) == in_order
