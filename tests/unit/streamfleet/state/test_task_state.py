import pytest

from streamfleet import serdes
from streamfleet.errors import ConfigError, StateStoreError, StoreUnavailableError
from streamfleet.state.api import StateStore
from streamfleet.state.memory_engine import MemoryEngine
from streamfleet.state.stores import Stores
from streamfleet.state.task_state import TaskState


def test_stores_of_one_task_do_not_see_each_other(new_task):
    task = new_task(Stores.key_value("one"), Stores.key_value("two"))
    one, two = task.state.stores.values()
    one.put("a", "1")
    two.put("b", "2")
    task.commit()
    assert list(one.all()) == [("a", "1")]
    assert list(two.all()) == [("b", "2")]


def test_what_was_committed_survives_and_the_rest_does_not(new_task):
    task = new_task(Stores.key_value("s"))
    task.store.put("a", "1")
    task.commit()
    task.store.put("b", "2")
    task.reopen()
    assert list(task.store.all()) == [("a", "1")]


def test_offsets_are_committed_with_the_rows(new_task):
    task = new_task(Stores.key_value("s"), Stores.key_value("m", kind="in_memory"))
    assert task.state.changelog_offsets() == {}
    task.commit(s=41, m=7)
    task.commit(s=42)
    assert task.state.changelog_offsets() == {"app-s-changelog": 42, "app-m-changelog": 7}
    task.reopen()
    assert task.state.changelog_offsets() == {"app-s-changelog": 42}


def test_rows_and_offsets_of_one_commit_are_one_batch(new_task):
    task = new_task(Stores.key_value("one", kind="in_memory"), Stores.key_value("two", kind="in_memory"))
    batches = []
    engine = task.context.engine("in_memory")
    write = engine.write
    engine.write = lambda *batch: (batches.append(batch), write(*batch))
    for store in task.state.stores.values():
        store.put("a", "1")
    task.commit(one=1, two=2)
    assert len(batches) == 1


def test_an_offset_of_a_topic_that_is_no_changelog_is_refused(new_task):
    task = new_task(Stores.key_value("s"))
    with pytest.raises(
        StateStoreError, match="app-other-changelog is not a changelog of this task; it has app-s-changelog"
    ):
        task.commit(other=1)


def test_an_abort_goes_back_to_the_last_commit(new_task):
    task = new_task(Stores.key_value("s"), Stores.key_value("m", kind="in_memory"))
    for store in task.state.stores.values():
        store.put("a", "1")
    task.commit()
    for store in task.state.stores.values():
        store.put("a", "2")
        store.put("b", "2")
    assert task.state.uncommitted_bytes > 0
    task.state.discard()
    assert task.state.uncommitted_bytes == 0
    assert [list(store.all()) for store in task.state.stores.values()] == [[("a", "1")], [("a", "1")]]


def test_uncommitted_bytes_grow_with_writes_and_end_with_the_commit(new_task):
    task = new_task(Stores.key_value("s"))
    task.store.put("a", "x" * 1000)
    assert task.state.uncommitted_bytes > 1000
    task.commit()
    assert task.state.uncommitted_bytes == 0


def test_a_store_keeps_its_rows_when_stores_come_go_and_move(new_task):
    task = new_task(Stores.key_value("one"), Stores.key_value("two"))
    for name, store in task.state.stores.items():
        store.put("name", name)
    task.commit()
    task.builders = (Stores.key_value("new"), Stores.key_value("two"))
    task.reopen()
    assert list(task.state.stores["new"].all()) == []
    task.state.stores["new"].put("name", "new")
    task.commit()
    task.builders = (Stores.key_value("two"), Stores.key_value("new"), Stores.key_value("one"))
    task.reopen()
    assert {name: store.get("name") for name, store in task.state.stores.items()} == {
        "one": "one",
        "two": "two",
        "new": "new",
    }


def test_rows_of_another_app_are_refused(new_task):
    task = new_task(Stores.key_value("s"))
    task.commit()
    task.context.application_id = "another"
    with pytest.raises(StateStoreError, match="belong to task content_0 of app.*not to task content_0 of another"):
        task.reopen()
    task.context.application_id = "app"


def test_a_closed_store_says_so(new_task):
    task = new_task(Stores.key_value("s", caching=True), Stores.window("w", 10, 10), Stores.session("x", 10))
    stores = task.state.stores
    assert all(store.is_open for store in stores.values())
    task.state.close()
    assert not any(store.is_open for store in stores.values())
    for ask in (
        lambda: stores["s"].get("a"),
        lambda: stores["s"].all(),
        lambda: stores["w"].put("a", "1", 0),
        lambda: stores["x"].fetch("a"),
    ):
        with pytest.raises(StoreUnavailableError, match="is not open"):
            ask()


def test_a_store_can_be_opened_again(new_task):
    task = new_task(Stores.key_value("s"))
    store = task.store
    store.put("a", "1")
    task.commit()
    store.close()
    store.open(task.context)
    assert store.get("a") == "1"


def test_a_store_that_cannot_open_closes_those_before_it(new_task, stored_entry):
    task = new_task(Stores.key_value("s"))
    opened = []

    class Watched:
        name = "watched"
        logging_enabled = False

        def build(self):
            store = OtherStore()
            opened.append(store)
            return store

    task.context.default_value_serde = None
    with pytest.raises(ConfigError, match="store bad has no value serde"):
        TaskState(task.context, [stored_entry(Watched(), None), stored_entry(Stores.key_value("bad"), None)])
    assert [store.is_open for store in opened] == [False]


class OtherStore(StateStore):
    """A store of a user's own making."""

    name = "watched"
    is_open = False
    is_persistent = False

    def open(self, context):
        self.is_open = True
        self.context = context

    def flush_cache(self):
        self.flushed = True

    def restore(self, records):
        self.restored = list(records)

    def close(self):
        self.is_open = False


def test_stores_of_users_own_making_are_opened_flushed_and_closed(new_task, stored_entry):
    class Builder:
        name = "watched"
        logging_enabled = False

        def build(self):
            return OtherStore()

    task = new_task(stored_entry(Builder(), None))
    store = task.store
    assert store.is_open and store.context is task.context
    task.commit()
    task.state.discard()
    assert store.flushed
    task.state.close()
    assert not store.is_open


def test_persistence_is_that_of_the_kind(new_task):
    task = new_task(Stores.key_value("s"), Stores.key_value("m", kind="in_memory"), Stores.lru("l", 1))
    assert [store.is_persistent for store in task.state.stores.values()] == [True, False, False]


def test_serdes_see_the_name_of_the_changelog_topic(new_task):
    topics = []

    class Spy:
        def serialize(self, topic, value):
            topics.append(topic)
            return value.encode()

        def deserialize(self, topic, data):
            topics.append(topic)
            return data.decode()

    task = new_task(Stores.key_value("s", key_serde=Spy(), value_serde=Spy()))
    task.store.put("a", "1")
    task.store.get("a")
    assert set(topics) == {"app-s-changelog"}


def test_default_serdes_are_used_where_a_store_has_none(new_task):
    task = new_task(Stores.key_value("s"), default_key_serde=serdes.long(), default_value_serde=serdes.boolean())
    task.store.put(1, True)
    assert list(task.store.all()) == [(1, True)]


def test_memory_engine_is_shared_by_the_stores_of_a_task(new_task):
    task = new_task(Stores.key_value("a", kind="in_memory"), Stores.key_value("b", kind="in_memory"))
    assert isinstance(task.context.engines["in_memory"], MemoryEngine)
    assert list(task.context.engines) == ["in_memory"]


def test_a_failed_flush_does_not_keep_later_stores_from_being_flushed(new_task):
    task = new_task(Stores.key_value("one", caching=True), Stores.key_value("two", caching=True))
    one, two = task.state.stores.values()
    flushed = []

    def fail(*_):
        raise RuntimeError("downstream")

    one.set_flush_listener(fail, send_old_values=False)
    two.set_flush_listener(lambda *update: flushed.append(update), send_old_values=False)
    one.put("a", "1")
    two.put("b", "2")
    with pytest.raises(StateStoreError, match="the cache of store one could not be flushed: downstream"):
        task.flush()
    assert flushed == [("b", "2", None, 0)]
