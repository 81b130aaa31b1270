"""The prober's judge of who was the owner."""

from tests.queries.ownership import Claim, Start, false_claims, starts

A, B = "worker-a", "worker-b"
BEGUN = [Start(A, 0, 100.0), Start(B, 0, 200.0), Start(B, 1, 100.0)]


def claim(worker, asked_at, position=5, partition=0):
    return Claim(worker, partition, asked_at, asked_at + 0.01, position)


def test_owners_one_after_the_other_may_both_claim_a_partition_and_the_second_may_be_behind():
    assert false_claims([claim(A, 150.0, 9), claim(A, 199.995, 9), claim(B, 200.1, 4)], BEGUN) == []


def test_who_claims_a_partition_that_another_one_has_begun_with_lies():
    assert false_claims([claim(A, 203.5)], BEGUN) == [f"{A} says it has 0, 3.500 s after {B} began with it"]


def test_who_has_begun_again_does_not():
    assert false_claims([claim(A, 203.5)], [*BEGUN, Start(A, 0, 203.0)]) == []


def test_an_owner_may_answer_before_its_log_says_that_it_is_one():
    assert false_claims([claim(B, 199.9)], BEGUN) == []


def test_an_owner_does_not_go_back_in_time_but_for_questions_that_were_under_way_together():
    both = [Claim(A, 0, 150.0, 150.2, 9), Claim(A, 0, 150.1, 150.3, 8)]
    assert false_claims(both, BEGUN) == []
    assert false_claims([*both, claim(A, 151.0, 8)], BEGUN) == [f"{A} has 0 at 8, and had it at 9 before"]


def test_a_new_start_may_begin_at_an_older_position():
    assert false_claims([claim(A, 150.0, 9), claim(A, 160.0, 3)], [*BEGUN, Start(A, 0, 155.0)]) == []


def test_starts_are_read_from_the_log():
    events = [
        {"event": "task running", "task": "0_3", "timestamp": "1970-01-01T00:01:00.500000Z"},
        {"event": "task closed", "task": "0_3", "timestamp": "1970-01-01T00:02:00.500000Z"},
    ]
    assert starts(A, events) == [Start(A, 3, 60.5)]
