from __future__ import annotations

import base64
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamfleet.task.offsets import CommittedOffset

LONGS = st.integers(-(2**63), 2**63 - 1)


@given(LONGS, LONGS, st.dictionaries(st.text(), LONGS))
def test_metadata_comes_back_as_it_was_written(offset, partition_time, metadata):
    written = CommittedOffset(offset, partition_time, metadata)
    assert CommittedOffset.parse(offset, written.metadata) == written


def test_metadata_has_the_bytes_of_kafka_streams():
    data = base64.b64decode(CommittedOffset(5, 100, {"key": 7}).metadata)
    assert data == b"\x02" + struct.pack(">q", 100) + struct.pack(">ii", 1, 3) + b"key" + struct.pack(">q", 7)


def test_without_processor_metadata_only_the_time_is_written():
    assert base64.b64decode(CommittedOffset(5, 100).metadata) == b"\x02" + struct.pack(">q", 100)


def test_first_version_has_a_time_only():
    text = base64.b64encode(b"\x01" + struct.pack(">q", 100)).decode()
    assert CommittedOffset.parse(5, text) == CommittedOffset(5, 100)


@pytest.mark.parametrize(
    "text", ["", "hello", "AA==", base64.b64encode(b"\x09" + bytes(8)).decode(), "AgAAAAAAAAAAAAAAAQ=="]
)
def test_metadata_that_is_not_ours_means_an_unknown_time(text):
    assert CommittedOffset.parse(5, text) == CommittedOffset(5, -1)
