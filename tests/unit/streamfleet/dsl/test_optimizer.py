"""Rewritten topologies give the results of those that were not, with fewer topics and stores."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import streamfleet as sf

slow = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
records = st.lists(
    st.tuples(st.just("in"), st.sampled_from("ab"), st.sampled_from("xyz"), st.integers(0, 40)), max_size=20
)


def fan_out(builder):
    """One key change, behind it a branch, two aggregations and a join."""
    keyed = builder.stream("in").select_key(lambda key, value: value)
    branches = keyed.split(name="by-").branch(lambda key, value: value != "z", name="xy").default_branch(name="z")
    for name, stream in (("xy", branches["by-xy"]), ("z", branches["by-z"])):
        stream.group_by_key().count(store=f"count-{name}").to_stream().to(f"out-{name}", value_serde=sf.serdes.long())
    windows = sf.JoinWindows(5, 5, 100)
    keyed.join(keyed, lambda one, other: f"{one}+{other}", window=windows, name="self").to("out-join")


def table(builder):
    builder.table("in", store="t").map_values(lambda value: value + "!").to_stream().to("out")


def built(build, optimization, **settings):
    config = sf.StreamsConfig(application_id="app", topology_optimization=optimization, **settings)
    builder = sf.StreamsBuilder(config)
    build(builder)
    return builder.build().plan({"in": 3}, config)


def repartitions(plan):
    return [name for name in plan.internal_topics if name.endswith("-repartition")]


def test_one_repartition_topic_serves_everything_behind_a_key_change():
    assert len(repartitions(built(fan_out, "none"))) == 4
    assert repartitions(built(fan_out, "merge.repartition.topics")) == ["app-count-xy-repartition"]


def test_a_repartition_that_was_asked_for_is_never_merged():
    def build(builder):
        keyed = builder.stream("in").select_key(lambda key, value: value)
        keyed.repartition(name="mine").group_by_key().count(store="a")
        keyed.group_by_key().count(store="b")

    assert len(repartitions(built(build, "all"))) == 2


class Rekey(sf.Processor):
    def process(self, record):
        self.context.forward(record.with_key(record.value))


class Shout(sf.FixedKeyProcessor):
    def process(self, record):
        self.context.forward(record.with_value(record.value.upper()))


def test_what_a_processor_gives_new_keys_is_repartitioned_behind_it_once():
    """In front of it, rows of one key would end up in several partitions."""

    def build(builder):
        keyed = builder.stream("in").select_key(lambda key, value: value)
        keyed.group_by_key().count(store="a")
        rekeyed = keyed.process(Rekey, name="rekey")
        rekeyed.group_by_key().count(store="b")
        rekeyed.group_by_key().count(store="c")

    plan = built(build, "all")
    assert repartitions(plan) == ["app-a-repartition", "app-b-repartition"]
    (rekeying,) = (part for part in plan.sub_topologies.values() if "app-b-repartition" in part.sinks)
    assert rekeying.sources == ("in",), "and not behind the topic of the first key change"


def test_a_processor_of_values_keeps_repartition_topics_apart():
    def build(builder):
        keyed = builder.stream("in").select_key(lambda key, value: value)
        keyed.process_values(Shout).group_by_key().count(store="a")
        keyed.group_by_key().count(store="b")

    assert len(repartitions(built(build, "all"))) == 2


def test_a_change_of_the_values_keeps_repartition_topics_apart():
    def build(builder):
        keyed = builder.stream("in").select_key(lambda key, value: value)
        keyed.map_values(str).group_by_key().count(store="a")
        keyed.group_by_key().count(store="b")

    assert len(repartitions(built(build, "all"))) == 2


def test_a_table_is_restored_from_its_own_topic():
    assert "app-t-changelog" in built(table, "none").internal_topics
    plan = built(table, "reuse.ktable.source.topics")
    assert plan.internal_topics == {}
    assert [part.changelog_topics for part in plan.sub_topologies.values()] == [("in",)]


def test_a_self_join_has_one_store():
    assert sum("store-changelog" in name for name in built(fan_out, "none").internal_topics) == 2
    assert sum("store-changelog" in name for name in built(fan_out, "all").internal_topics) == 1


def test_a_builder_can_build_again():
    config = sf.StreamsConfig(application_id="app", topology_optimization="all")
    builder = sf.StreamsBuilder(config)
    fan_out(builder)
    assert builder.build().describe() == builder.build().describe()


@slow
@given(records)
@pytest.mark.parametrize("build", [fan_out, table])
def test_results_are_those_of_the_topology_as_it_was_written(run, build, records):
    outcomes = []
    for optimization in ("none", "all"):
        results, _, dropped = run(build, records, topology_optimization=optimization)
        by_topic = {}
        for record in results:
            by_topic.setdefault(record.topic, []).append((record.key, record.value, record.timestamp))
        outcomes.append((by_topic, dropped))
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("words", ["some", "none,all", "all,single.store.self.join", ""])
def test_an_unknown_optimization_is_refused(words):
    with pytest.raises(sf.ConfigError, match=r"topology\.optimization cannot be"):
        sf.StreamsConfig(application_id="app", topology_optimization=words)


@pytest.mark.parametrize("method", ["join", "left_join", "outer_join"])
def test_over_a_single_store_a_record_always_meets_itself_and_needs_a_key(run, method):
    """As in the original, where two stores would give something else: docs/language.md says so."""

    def build(builder):
        stream = builder.stream("in")
        later = sf.JoinWindows(before=-2, after=5, grace=0)
        getattr(stream, method)(stream, lambda one, other: f"{one}+{other}", window=later).to("out")

    script = [("in", "a", "1", 10), ("in", None, "n", 11), ("in", "a", "2", 12)]
    results, _, dropped = run(build, script, topology_optimization="single.store.self.join")
    assert [r.value.decode() for r in results] == ["1+1", "1+2", "2+2"]
    assert dropped == 1


@pytest.mark.parametrize("operator", ["process", "process_values"])
@pytest.mark.parametrize("minds", [True, False])
def test_the_original_s_setting_says_whether_own_processors_count(operator, minds):
    def build(builder):
        keyed = builder.stream("in").select_key(lambda key, value: value)
        getattr(keyed, operator)(Shout if operator == "process_values" else Rekey).group_by_key().count(store="a")
        keyed.group_by_key().count(store="b")

    plan = built(build, "all", optimizer_minds_processors=minds)
    assert len(repartitions(plan)) == 2 if minds else 1
    (first,) = (part for part in plan.sub_topologies.values() if part.sources == ("in",))
    assert first.sinks == (("app-a-repartition", "app-b-repartition") if minds else ("app-a-repartition",))
