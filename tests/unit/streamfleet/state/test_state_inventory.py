"""What a process finds in its state directory when it starts."""

import pytest

from streamfleet.state.engine_rows import EngineRows
from streamfleet.state.rocksdb_engine import RocksDBEngine
from streamfleet.state.state_directory import StateDirectory
from streamfleet.state.state_inventory import take_inventory

ID, OTHER = "c0ffee" + "0" * 10, "beef" + "0" * 12


@pytest.fixture
def directory(tmp_path):
    made = StateDirectory(tmp_path, "app")
    made.path.mkdir()
    return made


def write(directory, content_id, partition, offsets, app="app"):
    path = directory.task_directory(content_id, partition)
    engine = RocksDBEngine(path)
    EngineRows(engine, app, path.name).commit(offsets)
    engine.close()
    return path


def test_the_sums_are_of_what_comes_next_in_each_changelog(directory):
    write(directory, ID, 0, {"a-changelog": 9, "b-changelog": 4})
    write(directory, ID, 1, {})
    found = take_inventory(directory, "app", {ID}).offset_sums()
    assert found == {(ID, 0): 15, (ID, 1): 0}


def test_tasks_of_another_topology_and_other_directories_are_left_alone(directory):
    path = write(directory, OTHER, 0, {"a-changelog": 9})
    before = {file: file.stat().st_mtime_ns for file in path.iterdir()}
    (directory.path / "global").mkdir()
    assert take_inventory(directory, "app", {ID}).offset_sums() == {}
    assert {file: file.stat().st_mtime_ns for file in path.iterdir()} == before


def test_a_directory_without_a_database_gets_none(directory):
    path = directory.task_directory(ID, 0)
    path.mkdir()
    assert take_inventory(directory, "app", {ID}).offset_sums() == {(ID, 0): 0}
    assert not list(path.iterdir())


def test_what_cannot_be_read_counts_as_nothing(directory):
    path = write(directory, ID, 0, {"a-changelog": 9})
    for manifest in path.glob("MANIFEST*"):
        manifest.write_bytes(b"nonsense")
    write(directory, ID, 1, {"a-changelog": 9}, app="another")
    write(directory, ID, 2, {"a-changelog": 9})
    assert take_inventory(directory, "app", {ID}).offset_sums() == {(ID, 2): 10}


def test_a_database_is_free_again_afterwards(directory):
    path = write(directory, ID, 0, {"a-changelog": 9})
    take_inventory(directory, "app", {ID})
    RocksDBEngine(path).close()


def test_what_was_deleted_is_forgotten(directory):
    write(directory, ID, 0, {"a-changelog": 9})
    inventory = take_inventory(directory, "app", {ID})
    inventory.forget((ID, 0))
    inventory.forget((ID, 7))
    assert inventory.offset_sums() == {}
