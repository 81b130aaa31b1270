"""Snapshots: taken over by a task that has nothing, refused when anything does not fit, and never half taken."""

import contextlib
from dataclasses import replace

import pytest

from streamfleet.records import RawRecord
from streamfleet.state import engine_rows
from streamfleet.state.snapshot import SnapshotManifest, write_snapshot
from streamfleet.state.stores import Stores
from streamfleet.state.task_state import TaskState

CHANGELOG = "app-s-changelog"
ROWS = [(f"k{n:03d}".encode(), f"v{n}".encode()) for n in range(500)]


def manifest(**changes):
    fields = {
        "application_id": "app",
        "store": "s",
        "partition": 0,
        "store_number": 0,
        "changelog": CHANGELOG,
        "changelog_topic_id": "id-1",
        "changelog_offset": 99,
        "files": (),
    }
    return SnapshotManifest(**(fields | changes))


@pytest.fixture
def root(tmp_path):
    return tmp_path / "snapshots"


def opened(task, root, topic_ids=None):
    """The task's state, opened anew with snapshots to look at."""
    task.state.close()
    task.context.close_engines()
    entries = [task.entry(builder) for builder in task.builders]
    task.state = TaskState(task.context, entries, topic_ids or {CHANGELOG: "id-1"}, root)
    return task.state


def content(state, store="s"):
    with state.stores[store].all() as rows:
        return dict(rows)


EXPECTED = {key.decode(): value.decode() for key, value in ROWS}


def test_an_empty_task_takes_the_rows_and_the_offset_over(new_task, root):
    write_snapshot(root, manifest(), ROWS, rows_per_file=200)
    state = opened(new_task(Stores.key_value("s")), root)
    assert content(state) == EXPECTED
    assert state.changelog_offsets() == {CHANGELOG: 99}


def test_the_tail_is_replayed_over_it(new_task, root):
    write_snapshot(root, manifest(), ROWS)
    state = opened(new_task(Stores.key_value("s")), root)
    tail = [RawRecord(CHANGELOG, 0, 100, 5, b"k000", None), RawRecord(CHANGELOG, 0, 101, 6, b"new", b"row")]
    state.stores["s"].restore(tail)
    state.commit({CHANGELOG: 101})
    expected = EXPECTED | {"new": "row"}
    del expected["k000"]
    assert content(state) == expected


def test_a_store_with_a_taken_number_gets_its_rows_rewritten(new_task, root):
    write_snapshot(root, manifest(store_number=0), ROWS)
    task = new_task(Stores.key_value("first"))
    task.store.put("own", "row")
    task.commit()
    task.builders = [*task.builders, Stores.key_value("s")]
    state = opened(task, root)
    assert content(state) == EXPECTED
    assert content(state, "first") == {"own": "row"}


def test_a_task_that_has_state_keeps_it(new_task, root):
    write_snapshot(root, manifest(), ROWS)
    task = new_task(Stores.key_value("s"))
    task.store.put("mine", "1")
    task.commit(s=3)
    state = opened(task, root)
    assert content(state) == {"mine": "1"}
    assert state.changelog_offsets() == {CHANGELOG: 3}


@pytest.mark.parametrize(
    "wrong",
    [
        {"format": 2},
        {"application_id": "other"},
        {"changelog": "another-topic"},
        {"changelog_topic_id": "id-of-a-former-topic"},
    ],
)
def test_a_snapshot_of_something_else_is_not_used(new_task, root, wrong, capsys):
    write_snapshot(root, manifest(**wrong), ROWS)
    (root / manifest(**wrong).changelog).rename(root / CHANGELOG)
    state = opened(new_task(Stores.key_value("s")), root)
    assert content(state) == {}
    assert state.changelog_offsets() == {}
    assert "snapshot not used" in capsys.readouterr().out


@pytest.mark.parametrize("damage", ["flip", "truncate", "delete", "manifest"])
def test_a_damaged_snapshot_is_not_used(new_task, root, damage):
    write_snapshot(root, manifest(), ROWS)
    file = root / CHANGELOG / "0" / ("manifest.json" if damage == "manifest" else "000000.sst")
    data = bytearray(file.read_bytes())
    if damage == "delete":
        file.unlink()
    elif damage == "flip":
        data[len(data) // 2] ^= 0xFF
        file.write_bytes(data)
    else:
        file.write_bytes(data[: len(data) // 2])
    state = opened(new_task(Stores.key_value("s")), root)
    assert content(state) == {}


def test_rows_without_an_offset_are_emptied_not_replayed_over(new_task, root):
    """As a kill between taking the files over and writing the offset leaves them."""
    task = new_task(Stores.key_value("s"))
    task.store.put("left", "over")
    task.flush()
    task.state.commit({})
    assert content(opened(task, None)) == {}


def test_a_kill_at_any_write_of_the_take_over_leaves_nothing_or_all(new_task, root, monkeypatch):
    write_snapshot(root, manifest(), ROWS)
    for survived in range(8):
        task = new_task(Stores.key_value("s"))
        left = survived
        for verb in ("write", "ingest", "flush"):
            original = getattr(engine_rows.RocksDBEngine, verb)

            def dying(self, *args, original=original):
                nonlocal left
                if left == 0:
                    raise KeyboardInterrupt
                left -= 1
                return original(self, *args)

            monkeypatch.setattr(engine_rows.RocksDBEngine, verb, dying)
        with contextlib.suppress(KeyboardInterrupt):
            opened(task, root)
        monkeypatch.undo()
        assert content(opened(task, root)) == EXPECTED
        task.state.close()
        task.context.close_engines()


EPOCH_1 = "app-s-e1-changelog"


def in_epoch(task, root, changelog):
    """The task's state, opened anew with another changelog for its store."""
    task.state.close()
    task.context.close_engines()
    entries = [replace(task.entry(builder), changelog=changelog) for builder in task.builders]
    task.state = TaskState(task.context, entries, {changelog: "id-1"}, root)
    return task.state


def test_a_new_epoch_takes_the_place_of_the_rows_and_the_offset_of_the_former_one(new_task, root):
    write_snapshot(root, manifest(changelog=EPOCH_1), ROWS)
    task = new_task(Stores.key_value("s"))
    task.store.put("mine", "1")
    task.commit(s=3)
    state = in_epoch(task, root, EPOCH_1)
    assert content(state) == EXPECTED
    assert state.changelog_offsets() == {EPOCH_1: 99}


def test_going_back_to_the_former_epoch_replays_its_changelog(new_task, root):
    write_snapshot(root, manifest(changelog=EPOCH_1), ROWS)
    task = new_task(Stores.key_value("s"))
    task.commit(s=3)
    in_epoch(task, root, EPOCH_1)
    state = in_epoch(task, root, CHANGELOG)
    assert content(state) == {}
    assert state.changelog_offsets() == {}
