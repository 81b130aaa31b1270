"""Local state that is damaged, full, foreign, forbidden or in use: never taken for good, and never the only copy."""

import os
import shutil

import msgspec
import pytest
from tests.integration.faults.conftest import COLOURS, KEYS, failure_of, is_one_sentence, wait_for
from tests.integration.faults.damage import delete, flip, identity_of, swap, truncate, without
from tests.integration.faults.limited_process import LimitedProcess, assert_said, open_directory
from tests.integration.faults.limited_worker import NOBODY

import streamfleet as sf
from streamfleet.errors import ForeignStateError, StoreDamagedError
from streamfleet.kafka_streams import ClientState, KafkaStreams
from streamfleet.state import engine_rows
from streamfleet.state.rocksdb_engine import RocksDBEngine

ALL = len(KEYS) * len(COLOURS)
__all__ = ["open_directory"]  # a fixture


def corrupted_tasks(streams):
    return sum(counts.corrupted_tasks for counts in streams.metrics().threads.values())


# --- F18 ---


def test_F18_a_second_process_on_one_state_directory_is_refused(app):
    with app.running(), KafkaStreams(app.topology, app.config()) as twin:
        with pytest.raises(sf.StateStoreError, match="is in use by another process") as caught:
            twin.start()
        assert is_one_sentence(caught.value)
        app.write(ALL)
        app.wait_until_counted()


# --- F50 ---


@pytest.mark.parametrize("damage", [flip, truncate, delete])
def test_F50_no_reader_of_a_damaged_database_gets_part_of_its_rows(tmp_path, damage):
    path = tmp_path / "app" / "task"
    rows = {f"{n:06}".encode(): os.urandom(100) for n in range(20_000)}
    engine = RocksDBEngine(path)
    engine.write(rows.items(), [], [])
    engine.flush()
    engine.close()
    damage(path)
    readers = [
        lambda db: dict(db.scan(b"", None)),
        lambda db: dict(db.scan(b"", None, reverse=True)),
        lambda db: {key: db.get(key) for key in rows},
    ]
    for read in readers:
        with pytest.raises(StoreDamagedError) as caught:
            read_with(read, path)
        assert is_one_sentence(caught.value)
        assert "app/task" in str(caught.value) and str(tmp_path) not in str(caught.value)
        assert "damaged" in caught.value.hint


def read_with(read, path):
    engine = RocksDBEngine(path)
    try:
        return read(engine)
    finally:
        engine.close()


@pytest.mark.parametrize("damage", [flip, truncate, delete])
def test_F50_damaged_state_is_wiped_and_restored_and_nothing_is_lost(app, damage, logged):
    app.write(ALL)
    app.run_until_counted()
    for directory in app.task_directories():
        damage(directory)
    with app.running() as streams:
        app.write(ALL)
        app.wait_until_counted()
        assert corrupted_tasks(streams) == 4
        assert streams.state is ClientState.RUNNING
    said = [line["error"] for line in logged if line["event"] == "task corrupted, its state is wiped and restored"]
    assert len(said) == 4 and not any(str(app.bench.directory) in text for text in said)


def test_F50_damage_found_by_an_operator_is_no_matter_of_the_processing_handler(app):
    # So many keys that most are not in a block that opening the database has read already.
    records = [(f"key-{n:05}", COLOURS[n % len(COLOURS)]) for n in range(3000)]
    app.bench.write(app.source, records)
    app.expect(records)
    app.run_until_counted()
    with app.running(processing_handler="continue") as streams:
        for directory in app.task_directories():
            for path in directory.glob("*.sst"):
                path.write_bytes(bytes(path.stat().st_size))
        app.bench.write(app.source, records)
        app.expect(records)
        app.wait_until_counted()
        assert corrupted_tasks(streams) > 0
        assert streams.metrics().dropped_records_total == 0


def test_F50_damaged_state_that_no_changelog_can_restore_is_kept(bench):
    source = bench.topic("in", 1)
    builder = sf.StreamsBuilder()
    unlogged = sf.Materialized("counts", logging=False)
    builder.stream(source).group_by_key().count(materialized=unlogged)
    topology, config = builder.build(), bench.config(processing_guarantee="exactly_once_v2")
    bench.write(source, [(f"k{n}", "x") for n in range(100)])
    with bench.running(topology, config) as streams:
        wait_for(lambda: sum(c.commit_latency.count for c in streams.metrics().threads.values()) > 0)
    (directory,) = [path for path in (bench.directory / "w" / bench.app).iterdir() if path.is_dir()]
    truncate(directory)
    with KafkaStreams(topology, config) as streams:
        streams.start()
        error = failure_of(streams)
    assert isinstance(error, sf.StateStoreError) and is_one_sentence(error)
    assert "no changelog can restore counts" in str(error)
    assert any(directory.glob("*.sst"))


# --- F51 ---


@pytest.mark.parametrize(
    "damage",
    [without("MANIFEST-*"), without("CURRENT"), without("MANIFEST-*", "CURRENT"), without("*"), shutil.rmtree],
    ids=["manifest", "current", "both", "all files", "directory"],
)
def test_F51_the_offset_goes_with_the_rows_and_the_restore_closes_the_gap(app, damage):
    app.write(ALL)
    app.run_until_counted()
    for directory in app.task_directories():
        damage(directory)
    with app.running() as streams:
        app.write(ALL)
        app.wait_until_counted()
        assert sum(counts.restored_records for counts in streams.metrics().threads.values()) > 0


# --- F52, F54 ---


def refused(app):
    """What the app says to the state it finds; the state is left as it is."""
    before = set(app.bench.directory.rglob("*.sst"))
    with app.started() as streams:
        error = failure_of(streams)
        assert dict(streams.metrics().failures) == {"ForeignStateError": 1}
    assert isinstance(error, ForeignStateError) and is_one_sentence(error)
    assert before and all(path.exists() for path in before)
    return str(error)


def test_F52_the_state_of_another_task_is_refused(app):
    app.write(ALL)
    app.run_until_counted()
    one, other, *_ = app.task_directories()
    swap(one, other)
    assert f"belong to task {other.name} of {app.bench.app}" in refused(app)
    swap(one, other)
    app.run_until_counted()


def test_F52_the_state_of_another_app_is_refused(app, broker, tmp_path):
    app.write(ALL)
    app.run_until_counted()
    for directory in app.task_directories():
        identity_of(directory, lambda found: msgspec.structs.replace(found, application_id="somebody-else"))
    assert "of somebody-else" in refused(app)


def test_F52_a_database_that_is_not_ours_is_refused(app):
    app.write(ALL)
    app.run_until_counted()
    for directory in app.task_directories():
        engine = RocksDBEngine(directory)
        engine.write([(engine_rows._IDENTITY, b"\x00not json")], [], [])
        engine.flush()
        engine.close()
    assert "cannot be read" in refused(app)


def test_F54_state_of_a_newer_version_is_refused(app):
    app.write(ALL)
    app.run_until_counted()
    newer = engine_rows.FORMAT_VERSION + 1
    for directory in app.task_directories():
        identity_of(directory, lambda found: msgspec.structs.replace(found, format_version=newer))
    said = refused(app)
    assert f"format {newer}" in said and "newer version" in said
    for directory in app.task_directories():
        identity_of(directory, lambda found: msgspec.structs.replace(found, format_version=engine_rows.FORMAT_VERSION))
    app.run_until_counted()


# --- F53 ---


def test_F53_a_state_directory_without_rights_is_refused(app, open_directory):
    open_directory.chmod(0o555)
    outcome = LimitedProcess(app, open_directory).outcome()
    assert_said(outcome, "StateStoreError", app.bench.app, "Permission denied", "state.dir")


def test_F53_a_task_directory_without_rights_ends_the_app_with_its_path(app, open_directory):
    app.write(ALL)
    app.run_until_counted()
    give_to_nobody(open_directory)
    for directory in app.task_directories():
        directory.chmod(0)
    outcome = LimitedProcess(app, open_directory).outcome()
    assert_said(outcome, "StateStoreError", f"{app.bench.app}/", "ermission denied", "writable")
    assert str(open_directory) not in outcome["message"]
    for directory in app.task_directories():
        directory.chmod(0o700)
    app.write(ALL)
    app.run_until_counted()


def test_F53_too_few_open_files_end_the_app_with_the_limit_to_raise(app, open_directory):
    outcome = LimitedProcess(app, open_directory, at="after_init_txn", more_open_files=3).outcome()
    assert_said(outcome, "StateStoreError", "oo many open files", "ulimit -n")


def give_to_nobody(directory):
    if os.geteuid() == 0:
        for path in [directory, *directory.rglob("*")]:
            os.chown(path, NOBODY, NOBODY)
