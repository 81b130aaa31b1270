import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamfleet.partitioner import murmur2, partition_for


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_agrees_with_the_java_client(data, expected):
    assert murmur2(data) == expected


def test_partition_drops_the_sign_before_the_remainder():
    assert partition_for(b"foobar", 1000) == (-790332482 & 0x7FFFFFFF) % 1000


@given(st.binary(), st.integers(1, 500))
def test_partition_is_one_of_those_there_are(key, partitions):
    assert 0 <= partition_for(key, partitions) < partitions
