import pytest

import streamfleet as sf
from streamfleet.errors import StateStoreError
from streamfleet.topology.nodes import SourceNode
from streamfleet.worker.app_record import AppRecord, AppRecordFile, record_of

CONFIG = sf.StreamsConfig(application_id="shop")


def joined_topology():
    text = sf.serdes.string()
    builder = sf.StreamsBuilder()
    customers = builder.table("customers", key_serde=text, value_serde=text, store="customers")
    orders = builder.stream("orders", key_serde=text, value_serde=text).select_key(lambda key, order: order)
    orders.join(customers, lambda order, customer: order, name="with-customer").group_by_key().count().to_stream().to(
        "out"
    )
    return builder.build()


def inputs_of(topology):
    nodes = [node for node in topology.nodes.values() if isinstance(node, SourceNode)]
    return {topic: 3 for node in nodes for topic in node.topics if topic not in topology.repartition_topics}


@pytest.mark.parametrize("make", ["counting", "joined"])
def test_the_record_names_exactly_the_internal_topics_of_the_plan(topology, make):
    chosen = topology if make == "counting" else joined_topology()
    plan = chosen.plan(inputs_of(chosen), CONFIG)
    record = record_of(chosen, "shop")
    assert set(record.internal_topics) == set(plan.internal_topics)
    assert set(record.input_topics) == set(inputs_of(chosen))


def test_topics_of_an_older_version_stay_recorded(tmp_path):
    file = AppRecordFile(tmp_path / "shop")
    file.add(AppRecord("shop", ("a",), (), ("shop-old-changelog",)))
    whole = file.add(AppRecord("shop", ("b",), ("x.*",), ("shop-new-changelog",)))
    assert whole == AppRecord("shop", ("a", "b"), ("x.*",), ("shop-new-changelog", "shop-old-changelog"))
    assert file.load() == whole


def test_adding_does_not_end_a_pending_reset(tmp_path):
    file = AppRecordFile(tmp_path)
    file.save(AppRecord("shop", is_reset_pending=True))
    assert file.add(AppRecord("shop", ("a",))).is_reset_pending


def test_nothing_is_recorded_before_the_first_run(tmp_path):
    assert AppRecordFile(tmp_path / "never").load() is None


def test_a_damaged_record_is_named(tmp_path):
    (tmp_path / "app-record.json").write_text("{")
    with pytest.raises(StateStoreError, match="does not hold an app record"):
        AppRecordFile(tmp_path).load()
