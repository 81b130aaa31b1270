"""Topics and records that are not what they should be. Rows F34, F35, F37 to F41 and F47, on the ledger app."""

import shutil
import time
from types import SimpleNamespace

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions
from tests.e2e.faults.reduced_ledger import FAILED, ends_with, events_of, failure_of, kind_of_failure, reduced_ledger
from tests.integration.faults.conftest import delete_records, delete_topic, set_topic
from tests.ledger import topics
from tests.ledger.app import INPUT, output_topic
from tests.ledger.bench import APPLICATION
from tests.ledger.decoding import input_bytes
from tests.ledger.oracle import check_exactly_once
from tests.ledger.state_check import changelog_topic

COUNTS = changelog_topic(APPLICATION, "count")
CORRUPTED = "task corrupted, its state is wiped and restored"
DEAD_LETTERS = "ledger-dead-letters"
POISON = b"\xff\xfe"
LIMIT_BYTES = 4000
CHUNK = 30


def test_F34_a_changelog_truncated_past_the_state_is_restored_from_its_start(tmp_path):
    with reduced_ledger(tmp_path) as ledger:
        worker = ledger.half_done(0.4)
        kept = tmp_path / "kept"
        shutil.copytree(worker.state_directory, kept)
        ends = _ends(ledger, COUNTS)
        worker.start()
        ledger.write_some(0.7)
        ledger.bench.wait_until_caught_up()
        worker.leave()
        shutil.rmtree(worker.state_directory)
        kept.rename(worker.state_directory)  # older than the log is now
        delete_records(_admin(ledger), COUNTS, {number: end + 2 for number, end in ends.items()})
        worker.start()
        ledger.write_rest()
        ledger.finish()  # every key was counted again behind the cut, so nothing is missing
        corrupted = events_of(worker, CORRUPTED)
        assert len(corrupted) == len(ends) and all("goes on from" in event["error"] for event in corrupted)
        assert not events_of(worker, "rows of local state are lost")


def test_F35_a_changelog_made_anew_is_refused_again_and_again_and_what_came_out_stays_right(tmp_path):
    with reduced_ledger(tmp_path) as ledger:
        worker = ledger.half_done()
        delete_topic(_admin(ledger), COUNTS)
        before = _tables(ledger, worker)
        for _ in range(2):
            worker.start()
            worker.must_live = False
            ends_with(worker, FAILED)
            said = failure_of(worker)
            assert COUNTS in said and "deleted and created again" in said and "reset" in said, said
        assert before and before <= _tables(ledger, worker)
        _assert_outputs_are_those_of_what_was_processed(ledger)


def test_F37_an_input_that_grows_ends_the_worker_and_what_came_out_stays_right(tmp_path):
    with reduced_ledger(tmp_path) as ledger:
        worker = ledger.doomed("--setting", "source.check.interval.ms=300")
        ledger.write_some(0.5)
        ledger.bench.wait_until_caught_up()
        admin = AdminClient({"bootstrap.servers": ledger.bench.bootstrap})
        for future in admin.create_partitions([NewPartitions(INPUT, 4)]).values():
            future.result(10)
        ends_with(worker, FAILED)
        assert kind_of_failure(worker) == "SourceTopicChangedError"
        assert f"{INPUT} has 4 partitions, it had 2" in failure_of(worker)
        worker.start()
        worker.must_live = False
        ends_with(worker, FAILED)
        assert kind_of_failure(worker) == "TopologyError", (
            "no part of it runs with other partitions than its tables have"
        )
        _assert_outputs_are_those_of_what_was_processed(ledger)


def test_F38_an_input_that_was_deleted_is_waited_for_and_named_and_what_came_out_stays_right(tmp_path):
    with reduced_ledger(tmp_path) as ledger:
        worker = ledger.half_done()
        delete_topic(_admin(ledger), INPUT)
        began = time.time()
        worker.start("--setting", "missing.source.timeout.ms=3000")
        worker.must_live = False
        ends_with(worker, FAILED)
        assert kind_of_failure(worker) == "MissingSourceTopicError"
        assert failure_of(worker).startswith(f"source topics do not exist: {INPUT};")
        (waited,) = events_of(worker, "waiting for source topics", began)
        (failed,) = events_of(worker, "app failed", began)
        assert failed["timestamp"] - waited["timestamp"] > 2
        _assert_outputs_are_those_of_what_was_processed(ledger)


def test_F39_lost_input_ends_the_worker_with_the_gap_and_a_policy_goes_on_behind_it(tmp_path):
    with reduced_ledger(tmp_path) as ledger:
        worker = ledger.half_done()
        done = len(ledger.bench.written)
        ledger.write_some(0.8)
        later = ledger.records[done : len(ledger.bench.written)]
        lost = [record for record in later if record.partition == 0][:20]
        cut = ledger.offset_of(lost[-1]) + 1
        delete_records(_admin(ledger), INPUT, {0: cut})
        worker.start()
        worker.must_live = False
        ends_with(worker, FAILED)
        assert kind_of_failure(worker) == "InputGapError"
        assert f"has lost the offsets {ledger.offset_of(lost[0])} to {cut - 1}" in failure_of(worker)
        worker.start("--offset-reset", "earliest")
        ledger.write_rest()
        good = [record for record in ledger.records if record not in lost]
        ledger.finish_with(good, incomplete={record.key for record in lost})
        assert len(events_of(worker, "input goes on behind a gap")) == 1


def test_F40_records_that_cannot_be_read_end_the_worker_or_become_dead_letters(tmp_path):
    with reduced_ledger(tmp_path) as ledger:
        topics.create_topics(ledger.bench.bootstrap, [DEAD_LETTERS], 1)
        _write_poison(ledger, POISON, b"12345678")  # the first of its partition
        worker = ledger.doomed()
        ends_with(worker, FAILED)
        assert kind_of_failure(worker) == "DeserializationError"
        assert f"topic {INPUT}, partition 0, offset 0" in failure_of(worker)
        worker.start("--setting", "deserialization.exception.handler=continue", "--dead-letters", DEAD_LETTERS)
        ledger.write_some(0.5)
        key = ledger.records[0].key.encode()
        _write_poison(ledger, key, POISON)
        ledger.write_rest()
        _write_poison(ledger, key, POISON)  # the last of its partition
        ledger.finish_with(ledger.records)
        letters = topics.read_topic(ledger.bench.bootstrap, DEAD_LETTERS, 1)
        assert [(raw.key, raw.value) for raw in letters] == [(POISON, b"12345678"), (key, POISON), (key, POISON)]
        headers = [dict(raw.headers) for raw in letters]
        assert {each["__streams.errors.topic"] for each in headers} == {INPUT.encode()}
        end = sum(record.partition == 0 for record in ledger.records) + 2
        assert [int(each["__streams.errors.offset"]) for each in headers][::2] == [0, end]


def test_F41_a_result_that_is_too_large_ends_the_worker_or_is_left_out_alone(tmp_path):
    with reduced_ledger(tmp_path) as ledger:
        set_topic(_admin(ledger), output_topic("echo"), "max.message.bytes", LIMIT_BYTES)
        half = len(ledger.records) // 2
        ledger.bench.write(ledger.records[:half])
        large = ledger.records[half]
        _write_with_header(ledger, large, bytes(2 * LIMIT_BYTES))  # every result of it has the header
        worker = ledger.doomed()
        ends_with(worker, FAILED)
        assert kind_of_failure(worker) == "ProductionError"
        said = failure_of(worker)
        assert output_topic("echo") in said and "MSG_SIZE_TOO_LARGE" in said, said
        worker.start("--setting", "production.exception.handler=continue")
        ledger.write_rest()
        (anomaly,) = ledger.bench.finish()
        assert (anomaly.kind, anomaly.where) == ("lost", f"echo[{large.partition}]"), anomaly
        assert anomaly.detail.startswith("1 of ") and f"{large.record_id}" in anomaly.detail
        assert len(events_of(worker, "record dropped instead of being sent")) == 1


def test_F47_input_that_is_taken_back_is_never_processed(tmp_path):
    with reduced_ledger(tmp_path) as ledger:
        writer = Producer({"bootstrap.servers": ledger.bench.bootstrap, "transactional.id": "writer"})
        writer.init_transactions(10)
        ledger.started()
        for begin in range(0, len(ledger.records), CHUNK):
            chunk = ledger.records[begin : begin + CHUNK]
            for is_meant in (False, True):
                writer.begin_transaction()
                _write_all(writer, chunk)
                if is_meant:
                    writer.commit_transaction(10)
                else:
                    writer.flush(10)
                    writer.abort_transaction(10)
            ledger.bench.written += chunk
        writer.begin_transaction()  # what comes last is taken back, too
        _write_all(writer, ledger.records[:CHUNK])
        writer.flush(10)
        writer.abort_transaction(10)
        ledger.finish()


def _assert_outputs_are_those_of_what_was_processed(ledger):
    """Its state is of no more use, so the app cannot go on; until then nothing was lost, repeated or out of order."""
    keys = ledger.bench._complete(ledger.bench.written)
    assert check_exactly_once(ledger.bench.written, ledger.bench.outputs(), keys, accounts_first=False) == []


def _admin(ledger):
    return SimpleNamespace(admin=AdminClient({"bootstrap.servers": ledger.bench.bootstrap}))


def _ends(ledger, topic):
    """The offset of the last record of each partition; the marker of its transaction follows."""
    ends = {}
    for raw in topics.read_topic(ledger.bench.bootstrap, topic, ledger.bench.spec.partitions):
        ends[raw.partition] = raw.offset
    return ends


def _tables(ledger, worker):
    return {path for directory in ledger.task_directories(worker) for path in directory.glob("*.sst")}


def _write_poison(ledger, key, value):
    producer = ledger.bench._producer()
    producer.produce(INPUT, value, key, partition=0)
    assert producer.flush(10) == 0


def _write_with_header(ledger, record, header):
    producer = ledger.bench._producer()
    key, value, headers = input_bytes(record)
    headers = [*headers, ("large", header)]
    producer.produce(INPUT, value, key, partition=record.partition, timestamp=record.timestamp, headers=headers)
    assert producer.flush(10) == 0
    ledger.bench.written.append(record)


def _write_all(producer, records):
    for record in records:
        key, value, headers = input_bytes(record)
        producer.produce(INPUT, value, key, partition=record.partition, timestamp=record.timestamp, headers=headers)
