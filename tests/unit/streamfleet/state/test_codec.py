"""Errors of serdes, with the store's name around them."""

import pytest

from streamfleet import serdes
from streamfleet.errors import ConfigError, SerializationError, StateStoreError
from streamfleet.records import ValueAndTimestamp
from streamfleet.state.stores import Stores


@pytest.mark.parametrize("side", ["key", "value"])
def test_a_missing_serde_is_named_with_its_setting(new_task, side):
    with pytest.raises(ConfigError, match=f"store s has no {side} serde, and default.{side}.serde is not set"):
        new_task(Stores.key_value("s"), **{f"default_{side}_serde": None})


def test_a_key_that_does_not_fit_is_refused_with_its_type(new_task):
    store = new_task(Stores.key_value("s", key_serde=serdes.long())).store
    with pytest.raises(
        SerializationError, match=r"key of store s cannot be serialized with long\(\).*'x' \(str\)"
    ) as e:
        store.get("x")
    assert isinstance(e.value.__cause__, TypeError)
    assert "key_serde" in e.value.hint


def test_a_value_that_does_not_fit_is_refused_with_its_type(new_task):
    store = new_task(Stores.timestamped_key_value("s", value_serde=serdes.string())).store
    with pytest.raises(SerializationError, match=r"value of store s cannot be serialized with string\(\).*5 \(int\)"):
        store.put("a", ValueAndTimestamp(5, 0))


def test_a_serde_that_makes_null_of_a_key_is_refused(new_task):
    class Nothing:
        def serialize(self, topic, value):
            return None

        def deserialize(self, topic, data):
            return None

    store = new_task(Stores.key_value("s", key_serde=Nothing())).store
    with pytest.raises(SerializationError, match="with Nothing: it became null"):
        store.put("a", "1")


def test_rows_that_cannot_be_read_name_store_and_side(new_task):
    task = new_task(Stores.key_value("s"))
    task.store.put("a", "text")
    task.commit()
    task.builders = (Stores.key_value("s", value_serde=serdes.long()),)
    task.reopen()
    with pytest.raises(StateStoreError, match=r"value in store s cannot be read with long\(\)"):
        task.store.get("a")
    task.builders = (Stores.key_value("s", key_serde=serdes.long()),)
    task.reopen()
    with pytest.raises(StateStoreError, match=r"key in store s cannot be read with long\(\)"):
        list(task.store.all())
