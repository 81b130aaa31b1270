import msgspec
import pytest
from tests.audit_lab.bootstrap_specs import WHOLE, spec

from streamfleet_jobs.bootstrap.source import PartitionFacts, SourceFacts, check_source, next_offsets
from streamfleet_jobs.errors import RefusedError


def facts(nulls=None, **changes):
    whole = PartitionFacts(rows=10, distinct_offsets=10, first=0, last=9, stream_time=5)
    return SourceFacts({0: whole, 1: msgspec.structs.replace(whole, **changes)}, nulls or {"k": 0, "o": 0})


def test_a_whole_table_is_taken_and_the_app_goes_on_behind_it():
    check_source(spec(), facts())
    assert next_offsets(spec(), facts()) == {0: 10, 1: 10}


def test_an_empty_partition_begins_where_the_table_would():
    some = SourceFacts({0: facts().partitions[0]}, {})
    assert next_offsets(spec(), some) == {0: 10, 1: 0}
    later = WHOLE["source"] | {"first_offsets": {1: 70}}
    assert next_offsets(spec(source=later), some) == {0: 10, 1: 70}


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"first": 3, "rows": 7, "distinct_offsets": 7}, "partition 1 of the table begins with offset 3, not 0"),
        ({"rows": 11}, "has 1 rows twice"),
        ({"rows": 8, "distinct_offsets": 8}, "lacks 2 offsets between 0 and 9"),
        ({"misplaced": 4}, "has 4 rows whose key belongs into another one"),
        ({"nulls": {"o": 2}}, "column o is null in 2 rows"),
    ],
)
def test_a_table_that_no_app_would_have_read_is_refused(changed, why):
    with pytest.raises(RefusedError, match=why):
        check_source(spec(), facts(**changed))


def test_rows_of_a_partition_that_the_topic_has_not_are_refused():
    more = SourceFacts({5: facts().partitions[0]}, {})
    with pytest.raises(RefusedError, match="rows of partition 5, but topic orders has 2"):
        check_source(spec(), more)


def test_null_keys_are_left_out_as_the_app_does():
    check_source(spec(), facts(nulls={"k": 3}))


def test_behind_a_repartition_topic_keys_may_be_anywhere():
    through = WHOLE["input"] | {"through": "shop-s-repartition"}
    check_source(spec(input=through), facts(misplaced=4))
