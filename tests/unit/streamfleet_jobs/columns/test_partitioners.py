import zlib

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamfleet.partitioner import murmur2 as engine_murmur2
from streamfleet.partitioner import partition_for
from streamfleet_jobs.columns.binary import binary_values
from streamfleet_jobs.columns.partitioners import PARTITIONERS, crc32, fitting, fnv1a, murmur2, murmur2_partitions

KEYS = st.lists(st.binary(max_size=40), max_size=60)


def column(keys):
    return binary_values(pa.array(keys, pa.binary()))


@given(KEYS)
def test_murmur2_of_a_column_is_the_engines_murmur2_of_every_key(keys):
    assert murmur2(column(keys)).astype(np.int32).tolist() == [engine_murmur2(key) for key in keys]


@given(KEYS)
def test_crc32_of_a_column_is_zlibs_of_every_key(keys):
    assert crc32(column(keys)).tolist() == [zlib.crc32(key) for key in keys]


def test_fnv1a_has_the_published_values():
    assert fnv1a(column([b"", b"a", b"foobar"])).tolist() == [0x811C9DC5, 0xE40C292C, 0xBF9CF968]


@given(KEYS, st.integers(1, 50))
def test_partitions_are_those_the_engine_chooses(keys, partitions):
    assert murmur2_partitions(column(keys), partitions).tolist() == [partition_for(key, partitions) for key in keys]


def test_slices_chunks_and_nulls_are_read_as_they_are():
    keys = [b"k%d" % n for n in range(20)]
    whole = pa.array(keys, pa.binary())
    chunked = pa.chunked_array([whole.slice(3, 5), whole.slice(8, 4)])
    assert murmur2(binary_values(chunked)).tolist() == murmur2(column(keys[3:12])).tolist()
    assert murmur2(binary_values(pa.array([b"a", None, b"b"]))).tolist() == murmur2(column([b"a", b"", b"b"])).tolist()
    assert murmur2(binary_values(pa.chunked_array([], pa.binary()))).tolist() == []


def test_the_suffix_of_a_window_can_be_left_out():
    windowed = column([b"key-1" + bytes(12), b"k" + bytes(12), b"short"]).shortened(12)
    assert murmur2(windowed).tolist() == murmur2(column([b"key-1", b"k", b""])).tolist()


@pytest.mark.parametrize("name", sorted(PARTITIONERS))
def test_the_partitioner_that_placed_the_keys_fits_best(name):
    keys = column([b"customer-%05d" % n for n in range(500)])
    fits = fitting(keys, PARTITIONERS[name](keys, 12), 12)
    assert fits[name] == 500
    assert all(count < 100 for other, count in fits.items() if other != name)
