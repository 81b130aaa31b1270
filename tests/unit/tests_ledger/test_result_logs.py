"""What the broker keeps about offsets and batches, read without a broker."""

import struct

from tests.ledger.decoding import input_bytes, record_id
from tests.ledger.log_batches import WrittenBatch
from tests.ledger.result_logs import appended_results, commit_history
from tests.ledger.stints import Appended, Commit
from tests.ledger.workload import LedgerRecord

from streamfleet.ids import TopicPartition
from streamfleet.records import RawRecord


def text(value):
    return struct.pack(">h", len(value)) + value.encode()


def offset_record(group, topic, partition, offset, at_ms):
    key = struct.pack(">h", 1) + text(group) + text(topic) + struct.pack(">i", partition)
    value = None if offset is None else struct.pack(">hqi", 3, offset, -1) + text("") + struct.pack(">q", at_ms)
    return RawRecord("__consumer_offsets", 0, 0, at_ms, key, value, ())


def test_the_commits_of_one_group_are_told_by_partition_and_in_order():
    about_the_group = RawRecord("__consumer_offsets", 0, 0, 9, struct.pack(">h", 2) + text("ledger"), b"members", ())
    records = [
        offset_record("ledger", "in", 0, 5, 10),
        about_the_group,
        offset_record("another", "in", 0, 99, 11),
        offset_record("ledger", "in", 1, 7, 12),
        offset_record("ledger", "in", 0, 8, 13),
        offset_record("ledger", "in", 0, None, 14),
    ]
    assert commit_history(records, "ledger") == {
        TopicPartition("in", 0): [Commit(5, 10), Commit(8, 13)],
        TopicPartition("in", 1): [Commit(7, 12)],
    }


def test_results_are_told_with_their_producer_time_and_input_offset():
    batches = [WrittenBatch(0, 1000, 0, False, None), WrittenBatch(2, 2000, 0, False, None)]
    results = []
    for offset, number in enumerate([40, 41, 41]):
        key, value, headers = input_bytes(LedgerRecord("1-9", 3, 0, number, 0, 0))
        results.append(RawRecord("ledger-echo", 0, offset, 500 + offset, key, value, tuple(headers)))
    assert appended_results(results, batches, lambda raw: record_id(raw) - 33) == [
        Appended(7, 1000, 500),
        Appended(8, 1000, 501),
        Appended(8, 2000, 502),
    ]
