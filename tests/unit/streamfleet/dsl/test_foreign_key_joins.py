"""Foreign-key joins against two dicts."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import streamfleet as sf
from streamfleet.serdes.subscription import Instruction, Response, ResponseSerde, Subscription, SubscriptionSerde

slow = settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
left_updates = st.tuples(
    st.just("L"), st.sampled_from(["k1", "k2", "k3"]), st.sampled_from(["f1:x", "f2:x", "f1:y", ":z", None])
)
right_updates = st.tuples(st.just("R"), st.sampled_from(["f1", "f2"]), st.sampled_from(["1", "2", None]))
scripts = st.lists(left_updates | right_updates, max_size=30)


def foreign_key(value):
    return value.partition(":")[0] or None


def joined(method, **options):
    def build(builder):
        left, right = builder.table("L", store="left"), builder.table("R", store="right")
        join = getattr(left, method)
        join(right, lambda one, other: f"{one}+{other}", foreign_key=foreign_key, **options).to_stream().to("out")

    return build


@slow
@given(scripts, st.booleans())
@pytest.mark.parametrize("method", ["join", "left_join"])
def test_the_last_result_of_every_key_is_that_of_the_two_tables(run, method, script, cached):
    records = [(topic, key, value, time) for time, (topic, key, value) in enumerate(script)]
    cache = 10**6 if cached else 0
    results, stores, _ = run(joined(method, store="result"), records, statestore_cache_max_bytes=cache)
    left = {key: value for topic, key, value in script if topic == "L"}
    right = {key: value for topic, key, value in script if topic == "R"}
    expected = {}
    for key, value in left.items():
        if value is None:
            continue
        found = right.get(foreign_key(value))
        if found is not None or method == "left_join":
            expected[key] = f"{value}+{found}"
    assert stores["result"] == expected
    told = {r.key.decode(): r.value and r.value.decode() for r in results}
    assert {key: value for key, value in told.items() if value is not None} == expected


def test_one_word_names_everything_a_foreign_key_join_needs():
    builder = sf.StreamsBuilder()
    joined("join", name="fk")(builder)
    plan = builder.build().plan({"L": 2, "R": 5}, sf.StreamsConfig(application_id="app"))
    counts = {name: topic.partitions for name, topic in plan.internal_topics.items() if "fk" in name}
    assert counts == {
        "app-fk-subscription-registration-topic": 5,
        "app-fk-subscription-response-topic": 2,
        "app-fk-subscription-store-changelog": 5,
    }


def test_defaults_of_key_and_value_serdes_are_not_mixed_up(tmp_path):
    from streamfleet.testing import TopologyTestDriver

    config = sf.StreamsConfig(
        application_id="app",
        default_key_serde=sf.serdes.long(),
        default_value_serde=sf.serdes.string(),
        state_dir=tmp_path,
    )
    builder = sf.StreamsBuilder()
    left, right = builder.table("L"), builder.table("R")
    left.join(right, lambda one, other: one + other, foreign_key=lambda value: len(value)).to_stream().to("out")
    with TopologyTestDriver(builder.build(), config) as driver:
        driver.input_topic("R").pipe(3, "!", 0)
        driver.input_topic("L").pipe(7, "abc", 1)
        assert driver.output_topic("out").read_all() == [(7, "abc!")]


@pytest.mark.parametrize(
    "subscription",
    [
        Subscription(b"h" * 16, Instruction.ANSWER_ALWAYS, "key", 3),
        Subscription(None, Instruction.DELETE_AND_ANSWER, "key", 0),
        Subscription(b"h" * 16, Instruction.ANSWER_IF_THERE, "key", None),
    ],
)
def test_a_subscription_comes_back_as_it_was(subscription):
    serde = SubscriptionSerde(sf.serdes.string(), "registration-topic", "store")
    assert serde.deserialize("app-registration-topic", serde.serialize("app-registration-topic", subscription)) == (
        subscription
    )


def test_serdes_of_primary_keys_see_the_registration_topic_also_in_the_store():
    class Spy:
        def serialize(self, topic, value):
            return topic.encode()

        def deserialize(self, topic, data):
            return topic

    serde = SubscriptionSerde(Spy(), "registration-topic", "store")
    subscription = Subscription(None, Instruction.ANSWER_ALWAYS, "key", 0)
    for topic in ("app-registration-topic", "app-store-changelog"):
        assert b"app-registration-topic-pk" in serde.serialize(topic, subscription)


def test_a_newer_version_is_refused_with_what_to_do():
    with pytest.raises(ValueError, match="has version 2, and this is version 1; finish the upgrade"):
        SubscriptionSerde(sf.serdes.string(), "t", "s").deserialize("t", b"\x02\x00k")
    with pytest.raises(ValueError, match="a response of a foreign-key join has version 1"):
        ResponseSerde(sf.serdes.string()).deserialize("t", b"\x01v")


def test_a_response_without_value_comes_back_as_it_was():
    serde = ResponseSerde(sf.serdes.string())
    assert serde.deserialize("t", serde.serialize("t", Response(b"h" * 16, None, 3))) == Response(b"h" * 16, None, None)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda t: t.join(t, lambda one, other: one, foreign_key="id"), "join needs a function .* as foreign_key"),
        (
            lambda t: t.join(t, lambda one, other: one, foreign_key=lambda k, v: v),
            r"foreign_key is called with \(value\)",
        ),
        (
            lambda t: t.left_join(5, lambda one, other: one, foreign_key=lambda v: v),
            "left_join of a KTable needs another KTable",
        ),
        (lambda t: t.join(t, lambda one: one, foreign_key=lambda v: v), r"joiner is called with \(left, right\)"),
        (
            lambda t: t.join(t, lambda one, other: one, foreign_key=lambda v: v, partitioner=lambda key: [0]),
            r"join: the partitioner is called with \(topic, key, value, num_partitions\)",
        ),
        (
            lambda t: t.left_join(t, lambda one, other: one, foreign_key=lambda v: v, other_partitioner=0),
            r"left_join needs a function of .* as other_partitioner, but was given 0",
        ),
        (
            lambda t: t.join(t, lambda one, other: one, partitioner=lambda *a: [0]),
            "partitioners and foreign_key_with_key are for foreign-key joins",
        ),
        (
            lambda t: t.left_join(t, lambda one, other: one, foreign_key_with_key=True),
            "partitioners and foreign_key_with_key are for foreign-key joins",
        ),
        (
            lambda t: t.join(
                t, lambda k, a, b: a, foreign_key=lambda k, v: v, with_key=True, foreign_key_with_key=False
            ),
            r"foreign_key is called with \(value\)",
        ),
    ],
)
def test_a_foreign_key_join_that_cannot_be_is_refused(act, message):
    with pytest.raises(sf.OptionError, match=message):
        act(sf.StreamsBuilder().table("in"))


@pytest.mark.parametrize(
    ("options", "extractor", "joiner"),
    [
        ({}, lambda value: value[:2], lambda one, other: f"k1:{one}+{other}"),
        ({"with_key": True}, lambda key, value: value[:2], lambda key, one, other: f"{key}:{one}+{other}"),
        ({"foreign_key_with_key": True}, lambda key, value: value[:2], lambda one, other: f"k1:{one}+{other}"),
        (
            {"with_key": True, "foreign_key_with_key": False},
            lambda value: value[:2],
            lambda key, one, other: f"{key}:{one}+{other}",
        ),
    ],
)
@pytest.mark.parametrize("method", ["join", "left_join"])
def test_each_function_says_for_itself_whether_it_takes_the_key(run, method, options, extractor, joiner):
    def build(builder):
        left, right = builder.table("L"), builder.table("R")
        getattr(left, method)(right, joiner, foreign_key=extractor, **options).to_stream().to("out")

    results, _, _ = run(build, [("R", "f1", "1", 0), ("L", "k1", "f1x", 1)])
    assert [r.value for r in results] == [b"k1:f1x+1"]
