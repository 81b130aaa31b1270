"""Who wrote a changelog partition: read from bytes of a log file, judged by overlaps."""

import struct

from tests.ledger.log_batches import (
    Transaction,
    WrittenBatch,
    check_owners,
    committed_transactions,
    completed_transactions,
    open_transactions,
    parse_batches,
)

from streamfleet.records import RawRecord

HEADER = struct.Struct(">qiibIhiqqqhii")
TRANSACTIONAL, CONTROL = 0x10, 0x20


def batch_bytes(offset, producer, epoch, attributes, body=b"record"):
    return HEADER.pack(offset, 49 + len(body), 0, 2, 0, attributes, 0, 0, 0, producer, epoch, 0, 1) + body


def marker_bytes(offset, producer, epoch, kind):
    # length, attributes, time, offset, key length (zigzag 4), key: version and type, value length, no headers
    body = bytes([0x20, 0, 0, 0, 8]) + struct.pack(">hh", 0, kind) + bytes([12]) + bytes(6) + bytes([0])
    return batch_bytes(offset, producer, epoch, TRANSACTIONAL | CONTROL, body)


def data(offset, producer, epoch=0):
    return WrittenBatch(offset, producer, epoch, is_transactional=True, marker=None)


def marker(offset, producer, kind="commit", epoch=0):
    return WrittenBatch(offset, producer, epoch, is_transactional=True, marker=kind)


def test_batches_and_markers_are_read_from_the_bytes_of_a_log_file():
    log = batch_bytes(0, 7, 1, TRANSACTIONAL) + marker_bytes(1, 7, 1, 1) + marker_bytes(2, 8, 0, 0)
    assert list(parse_batches(log + b"\0" * 80)) == [data(0, 7, 1), marker(1, 7, epoch=1), marker(2, 8, "abort")]


def test_a_batch_that_is_half_written_is_left_out():
    log = batch_bytes(0, 7, 1, 0)
    assert list(parse_batches(log + log[:-1])) == [WrittenBatch(0, 7, 1, is_transactional=False, marker=None)]


def test_a_task_that_moves_and_comes_back_has_one_owner_at_a_time():
    batches = [data(0, 1), marker(1, 1), data(2, 2), data(3, 2), marker(4, 2), data(5, 1), marker(6, 1)]
    assert check_owners("log", committed_transactions(batches)) == []


def test_an_aborted_transaction_beside_a_committed_one_is_no_second_owner():
    batches = [data(0, 1), data(1, 2), marker(2, 2), marker(3, 1, "abort")]
    assert committed_transactions(batches) == [Transaction(2, 0, 1, 2)]


def test_two_committed_transactions_that_overlap_are_two_owners():
    batches = [data(0, 1), data(1, 2), marker(2, 2), marker(3, 1)]
    assert [a.kind for a in check_owners("log", committed_transactions(batches))] == ["two owners"]


def test_a_transaction_without_marker_is_open_since_its_first_batch():
    assert open_transactions([data(0, 1), marker(1, 1), data(2, 1), data(3, 2), data(4, 1), marker(5, 2)]) == {
        1: data(2, 1)
    }


def test_a_commit_of_an_older_epoch_is_a_second_owner():
    batches = [data(0, 1, 5), marker(1, 1, epoch=5), data(2, 1, 4), marker(3, 1, epoch=4)]
    assert [a.kind for a in check_owners("log", committed_transactions(batches))] == ["two owners"]


def test_a_transaction_is_over_when_the_coordinator_has_written_so_of_its_epoch():
    ongoing, prepared, complete, empty = 1, 2, 4, 0
    states = [(7, 0, ongoing), (7, 0, prepared), (7, 0, complete), (7, 1, empty), (8, 0, complete), (8, 0, ongoing)]
    log = [
        RawRecord("__transaction_state", 0, offset, 0, b"id", struct.pack(">hqhib", 1, producer, epoch, 10_000, state))
        for offset, (producer, epoch, state) in enumerate(states)
    ]
    log.append(RawRecord("__transaction_state", 0, len(log), 0, b"id", None))
    assert completed_transactions(log) == {(7, 0)}
