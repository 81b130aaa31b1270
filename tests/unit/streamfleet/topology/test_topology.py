import json
import re
from datetime import timedelta

import pytest

import streamfleet as sf
from streamfleet.testing import TopologyTestDriver


class Echo(sf.Processor):
    def process(self, record):
        self.context.forward(record)


def store(name="st", **options):
    return sf.Stores.key_value(name, **options)


@pytest.fixture
def topology():
    return sf.Topology().add_source("src", "in")


def test_nodes_that_share_a_store_are_one_sub_topology(topology):
    topology.add_source("src2", "in2").add_processor("p", Echo, "src").add_processor("q", Echo, "src2")
    assert len(topology.sub_topologies()) == 2
    topology.add_state_store(store(), "p", "q")
    (only,) = topology.sub_topologies()
    assert only.stores == ("st",)


def test_a_parent_that_is_named_twice_hands_over_once_and_is_described_once(topology):
    topology.add_processor("p", Echo, "src", "src").add_sink("out", "out", "p")
    assert "Processor: p (stores: [])\n      --> out\n      <-- src\n" in str(topology.describe())
    text = sf.serdes.string()
    config = sf.StreamsConfig(application_id="app", default_key_serde=text, default_value_serde=text)
    with TopologyTestDriver(topology, config) as driver:
        driver.pipe_raw("in", b"k", b"v", 0)
        assert [record.topic for record in driver.drain()] == ["out"]


def test_sub_topologies_are_numbered_in_the_order_of_their_first_node():
    topology = sf.Topology().add_source("z", "in1").add_source("a", "in2")
    assert [part.nodes[0].name for part in topology.sub_topologies()] == ["z", "a"]


def test_the_content_id_follows_the_stores_not_the_number():
    def with_first(topic):
        topology = sf.Topology().add_source("first", topic).add_source("src", "in").add_processor("p", Echo, "src")
        topology.add_state_store(store(), "p")
        return {part.stores: part.content_id for part in topology.sub_topologies()}

    assert with_first("x")[("st",)] == with_first("y")[("st",)]
    assert with_first("x")[()] != with_first("y")[()]


def test_processor_topology_has_real_topic_names():
    builder = sf.StreamsBuilder()
    builder.stream("in").select_key(lambda k, v: v).repartition(name="r").to("out")
    whole = builder.build().processor_topology("app")
    assert [source.topics for source in whole.sources] == [("in",), ("app-r-repartition",)]


def test_a_task_gets_only_its_sub_topology():
    builder = sf.StreamsBuilder()
    builder.stream("in").select_key(lambda k, v: v).repartition(name="r").to("out")
    second = builder.build().processor_topology("app", 1)
    assert [node.name for node in second.nodes] == ["r-repartition-source", "KSTREAM-SINK-0000000005"]


def test_a_supplier_brings_its_stores(topology):
    class WithStore(Echo):
        @classmethod
        def stores(cls):
            return [store("brought")]

    topology.add_processor("p", WithStore, "src")
    assert topology.nodes["p"].stores == ("brought",)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda t: t.add_source("src", "x"), "processor src is already added"),
        (lambda t: t.add_source("other", "in"), "topic in of source other has already been registered by source src"),
        (lambda t: t.add_source("other", []), "source other reads no topic"),
        (
            lambda t: t.add_source("other", re.compile("i.*")),
            "pattern i.* of source other matches a topic of source src",
        ),
        (lambda t: t.add_processor("p", Echo), "node p has no parent"),
        (lambda t: t.add_processor("p", Echo, "nope"), "parent node nope of p is unknown"),
        (lambda t: t.add_sink("k", "out", "src").add_processor("p", Echo, "k"), "sink k cannot be the parent of p"),
        (lambda t: t.add_state_store(store(), "src"), "st cannot be connected to src, a source or sink"),
        (lambda t: t.add_state_store(store()).add_state_store(store()), "a different state store .* name st"),
        (lambda t: t.add_state_store(store(), "nope"), "processor nope is not added yet"),
        (lambda t: t.connect_processor_and_state_stores("src", "nope"), "state store nope is not added yet"),
        (
            lambda t: t.add_source("other", re.compile("t.*")).add_global_store(store(), "g", "topic", "gp", Echo),
            "topic topic of source g has already been registered by source other",
        ),
    ],
)
def test_an_impossible_topology_is_refused_with_names(topology, act, message):
    with pytest.raises(sf.TopologyError, match=message):
        act(topology)


def test_a_global_store_cannot_be_connected(topology):
    topology.add_global_store(store(logging=False), "g", "topic", "gp", Echo).add_processor("p", Echo, "src")
    with pytest.raises(sf.TopologyError, match="leave it out: every processor may use every global store"):
        topology.connect_processor_and_state_stores("p", "st")


@pytest.mark.parametrize(
    ("supplier", "message"),
    [
        (Echo(), "is not a supplier"),
        (lambda needed: Echo(), "cannot be called without arguments"),
    ],
)
def test_what_is_no_supplier_is_refused(topology, supplier, message):
    with pytest.raises(sf.OptionError, match=message):
        topology.add_processor("p", supplier, "src")


def test_a_supplier_that_returns_one_instance_twice_is_refused(topology):
    shared = Echo()
    with pytest.raises(sf.OptionError, match="the supplier of operator p returned one instance twice"):
        topology.add_processor("p", lambda: shared, "src")


def test_a_class_whose_stores_needs_an_instance_is_refused(topology):
    class Unbound(Echo):
        def stores(self):
            return [store()]

    with pytest.raises(sf.OptionError, match="make it a classmethod or staticmethod"):
        topology.add_processor("p", Unbound, "src")


def test_json_is_stable_and_complete():
    def build():
        builder = sf.StreamsBuilder()
        table = builder.table("t", store="rows", value_serde=sf.serdes.long())
        builder.stream("in").join(table, lambda left, right: left).to("out", key_serde=sf.serdes.string())
        return builder.build().to_json()

    assert build() == build()
    content = json.loads(build())
    assert content["stores"] == {
        "rows": {
            "changelog": "rows-changelog",
            "engine": "rocksdb",
            "key_serde": None,
            "kind": "timestamped_key_value",
            "log_config": {},
            "logged": True,
            "max_entries": None,
            "retention_ms": None,
            "source_topic": None,
            "value_serde": {"id": "long"},
            "windowed": False,
        }
    }
    assert content["internal_topics"]["rows-changelog"]["partitions"] == {"rule": "tasks"}
    (part,) = content["sub_topologies"]
    assert {node["kind"] for node in part["nodes"]} == {"source", "processor", "sink"}


def every_operator():
    """All operators that have stores or internal topics of their own, by name."""
    text, minute = sf.serdes.string(), timedelta(minutes=1)
    defaults = {"key_serde": text, "value_serde": text}
    builder = sf.StreamsBuilder()
    stream, other = builder.stream("in", **defaults), builder.stream("other", **defaults)
    grouped, other_grouped = stream.group_by_key(**defaults), other.group_by_key(**defaults)
    windows = grouped.windowed_by(sf.TimeWindows(size=minute, grace=minute)).count(store="windows")
    windows.suppress(sf.Suppressed.until_window_closes(sf.BufferConfig.unbounded(), name="last"))
    grouped.windowed_by(sf.SessionWindows(gap=minute, grace=minute)).count(store="sessions")
    grouped.cogroup(joiner).cogroup(other_grouped, joiner).aggregate(str, name="together", store="together")
    near = sf.JoinWindows(minute, minute, minute)
    stream.join(other, joiner, window=near, with_key=True, name="both", store_name="both")
    stream.outer_join(other, joiner, window=near, with_key=True, name="any", store_name="any", kind="in_memory")
    history = sf.Stores.versioned_key_value("prices", timedelta(hours=1))
    prices = builder.table("prices", materialized=sf.Materialized(history), **defaults)
    stream.join(prices, joiner, with_key=True, name="priced", grace=minute)
    tracks, artists = (builder.table(name, store=name, **defaults) for name in ("tracks", "artists"))
    tracks.join(artists, joiner, foreign_key=lambda key, track: track, with_key=True, name="by-artist", store="result")
    return builder.build()


def joiner(key, left, right):
    return left


def test_json_knows_every_kind_of_store_by_a_name_that_stays():
    stores = json.loads(every_operator().to_json())["stores"]
    assert {name: store["kind"] for name, store in stores.items()} == {
        "any-outer-other-join-store": "timestamped_window",  # in memory there is a place for it
        "any-outer-shared-join-store": "key_value",
        "any-outer-this-join-store": "timestamped_window",
        "artists": "timestamped_key_value",
        "both-this-join-store": "window",
        "both-other-join-store": "window",
        "by-artist-subscription-store": "timestamped_key_value",
        "last-store": "change_buffer",
        "priced-Buffer": "record_buffer",
        "prices": "versioned_key_value",
        "result": "timestamped_key_value",
        "sessions": "session",
        "together": "timestamped_key_value",
        "tracks": "timestamped_key_value",
        "windows": "timestamped_window",
    }
    assert {name for name, store in stores.items() if store["engine"] == "in_memory"} == {
        "any-outer-other-join-store",
        "any-outer-shared-join-store",
        "any-outer-this-join-store",
        "last-store",
    }
    assert (stores["prices"]["history_ms"], stores["prices"]["segment_interval_ms"]) == (3_600_000, 300_000)


def test_json_knows_the_serdes_of_what_joins_write():
    content = json.loads(every_operator().to_json())
    serdes = {
        name: tuple(serde and serde["id"] for serde in (store["key_serde"], store["value_serde"]))
        for name, store in content["stores"].items()
    }
    assert serdes["windows"][0] == "string"
    assert serdes["last-store"][0] == "windowed(string)"
    assert serdes["priced-Buffer"] == serdes["prices"] == serdes["both-this-join-store"] == ("string", "string")
    assert serdes["any-outer-shared-join-store"] == ("sided_key(string)", "list_of(sided_value(string, string))")
    assert serdes["by-artist-subscription-store"] == ("bytes", "subscription(string)")
    sinks = {
        node["topic"]: node["value_serde"]["id"]
        for part in content["sub_topologies"]
        for node in part["nodes"]
        if node["kind"] == "sink"
    }
    assert sinks == {
        "by-artist-subscription-registration-topic": "subscription(string)",
        "by-artist-subscription-response-topic": "response(string)",
    }


def test_json_and_picture_know_the_topics_that_joins_need():
    topology = every_operator()
    content = json.loads(topology.to_json())
    kinds = {name: topic["kind"] for name, topic in content["internal_topics"].items()}
    assert {name for name, kind in kinds.items() if kind == "repartition"} == {
        "by-artist-subscription-registration-topic",
        "by-artist-subscription-response-topic",
    }
    changelogs = {f"{name}-changelog" for name in content["stores"]}
    assert {name for name, kind in kinds.items() if kind == "changelog"} == changelogs
    prices = content["internal_topics"]["prices-changelog"]["configs"]
    assert prices["min.compaction.lag.ms"] == str(25 * 3_600_000)
    svg = topology.to_svg()
    for name in (*content["stores"], *(name for name, kind in kinds.items() if kind == "repartition")):
        assert name in svg, name


def test_svg_names_every_topic():
    builder = sf.StreamsBuilder()
    builder.stream("orders").group_by(lambda k, v: v, name="by-customer").count(store="counts").to_stream().to("totals")
    svg = builder.build().to_svg(title="Orders")
    for name in ("orders", "by-customer-repartition", "totals", "counts", "Orders"):
        assert name in svg


@pytest.mark.parametrize("method", ["add_global_store", "add_read_only_state_store"])
@pytest.mark.parametrize("logging", [True, False, {"min.insync.replicas": "2"}])
def test_a_store_that_its_topic_restores_has_no_changelog_whatever_its_builder_says(method, logging):
    topology = sf.Topology()
    getattr(topology, method)(store(logging=logging), "src", "topic", "p", Echo)
    assert topology.plan({"topic": 1}, sf.StreamsConfig(application_id="app")).internal_topics == {}


def test_a_pattern_may_match_the_topic_of_a_global_store_that_is_there_already():
    topology = sf.Topology().add_global_store(store(), "g", "topic", "gp", Echo)
    topology.add_source("src", re.compile("t.*"))
    assert topology.nodes["src"].pattern.pattern == "t.*"
