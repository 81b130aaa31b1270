"""Bytes of stores: walked in the background, and shared out to the stores of a database."""

from types import SimpleNamespace

from tests.unit.streamfleet_platform.reconcile.sights import LOCK, STORE

from streamfleet_platform.reconcile.state_watch import StateWatch, store_sizes

PART = next(part for part in LOCK.sub_topologies if STORE in part["stores"])
CONTENT = PART["content_id"]


def test_a_stores_bytes_are_those_of_its_databases_over_all_slots():
    sizes = {0: {f"{CONTENT}_0": 10, f"{CONTENT}_1": 20, "0000000000000000_0": 500}, 1: {f"{CONTENT}_2": 25}}
    total, largest = store_sizes(LOCK, sizes)
    assert total == {STORE: 55} and largest == {STORE: (0, 30)}


def test_stores_of_one_database_share_its_bytes():
    lock = SimpleNamespace(sub_topologies=[{"content_id": "aa", "stores": ["x", "y"]}])
    total, largest = store_sizes(lock, {3: {"aa_0": 100, "aab_0": 7}})
    assert total == {"x": 50, "y": 50} and largest == {"x": (3, 100), "y": (3, 100)}


def test_nothing_on_disk_is_nothing():
    assert store_sizes(LOCK, {}) == ({}, {})


class Runtime:
    def __init__(self):
        self.walks = []

    def task_bytes(self, app, slot):
        self.walks.append((app, slot))
        if app == "bad":
            raise OSError("no such disk")
        return {f"{CONTENT}_0": 8}


def test_a_walk_is_taken_over_when_it_has_ended_and_not_repeated_at_once():
    runtime = Runtime()
    watch = StateWatch(runtime)
    apps = [SimpleNamespace(app=SimpleNamespace(name="one"), workers=[SimpleNamespace(slot=0)])]
    assert watch.sizes(apps) == {}
    watch._walk.result(20)
    assert watch.sizes(apps) == {"one": {0: {f"{CONTENT}_0": 8}}}
    watch.sizes(apps)
    assert runtime.walks == [("one", 0)]
    watch.close()


def test_a_walk_that_fails_leaves_what_was_known():
    watch = StateWatch(Runtime(), every_seconds=0)
    good, bad = (
        [SimpleNamespace(app=SimpleNamespace(name=n), workers=[SimpleNamespace(slot=0)])] for n in ("one", "bad")
    )
    watch.sizes(good)
    watch._walk.result(20)
    known = watch.sizes(bad)
    watch._walk.exception(20)
    assert watch.sizes(bad) == known != {}
    watch.close()
