import pytest

from streamfleet.murmur3 import hash128


@pytest.mark.parametrize(
    ("data", "hashed"),
    [
        (b"f1#a", "f3741bc129f07deb655aced376b6504d"),
        (b"f1", "6c97e18d1adb49629dacecb4a42754c1"),
        (b"f2#1", "840244d65bbf9b07089a23b65a440804"),
    ],
)
def test_hashes_are_those_that_kafka_streams_recorded(data, hashed):
    assert hash128(data).hex() == hashed


def test_every_length_has_its_own_hash():
    assert len({hash128(b"\x00" * length) for length in range(50)}) == 50
