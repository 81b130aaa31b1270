"""Parts of the scenario format that the public recordings do not use: each must reach the engine and do what it says."""

import json

import pytest
from tests.conformance import execution, scenario, settings
from tests.conformance.kit import Boom

TEXT = {"key": "string", "value": "string"}
DEFAULTS = {"application.id": "app", "default.key.serde": "string", "default.value.serde": "string"}


def play(tmp_path, ops, steps, *, topics=None, config=None, **fields):
    """Run ops and steps (each [topic, key, value, timestamp, headers?] or a number of ms to advance)."""
    data = {
        "format": 1,
        "name": "x",
        "family": "x",
        "config": DEFAULTS | (config or {}),
        "topics": {"in": TEXT, "out": TEXT} | (topics or {}),
        "topology": ops,
        "describe": [],
        "steps": [{"advance" if isinstance(s, int) else "pipe": s, "out": []} for s in steps],
        "dropped": 0,
        "stores": {},
    } | fields
    path = tmp_path / "x.json"
    path.write_text(json.dumps(data))
    outcome = execution.run(scenario.load(path), settings.Variant())
    assert outcome.failure is None, outcome.failure
    return outcome


def sent(outcome, topic="out"):
    return [record[1:] for step in outcome.steps for record in step.out if record[0] == topic]


def source(**fields):
    return {"op": "stream", "topics": ["in"], **fields}


TO_OUT = {"op": "to", "topic": "out"}
STORE = {"name": "st", "kind": "kv", "key": "string", "value": "string"}


def test_offset_reset_is_accepted_by_word_and_by_duration(tmp_path):
    for reset in ("earliest", "latest", "none", 5000):
        play(tmp_path, [source(consumed={"reset": reset}), TO_OUT], [["in", "a", "b", 1]])


def test_a_processor_may_provide_its_store(tmp_path):
    processor = {"name": "dedup", "store": "st", "provides": [STORE]}
    ops = [source(), {"op": "process", "processor": processor}, TO_OUT]
    outcome = play(tmp_path, ops, [["in", "a", "1", 1], ["in", "a", "2", 2], ["in", "b", "3", 3]])
    assert sent(outcome) == [["a", "1", 1], ["b", "3", 3]]
    assert outcome.stores == {"st": [["a", "1"], ["b", "3"]]}


def test_a_topic_may_depend_on_time_and_origin_of_the_record(tmp_path):
    ops = [source(), {"op": "to", "topic_fn": ["concat", "$topic", "-", "$ts"]}]
    outcome = play(tmp_path, ops, [["in", "a", "1", 7]], topics={"in-7": TEXT})
    assert sent(outcome, "in-7") == [["a", "1", 7]]


def test_partitions_are_chosen_by_expression(tmp_path):
    partitions = ["if", ["eq", "$v", "none"], ["list"], ["list", 0]]
    ops = [source(), {"op": "to", "topic": "out", "produced": {"partitions_fn": partitions}}]
    outcome = play(tmp_path, ops, [["in", "a", "none", 1], ["in", "a", "one", 2]])
    assert sent(outcome) == [["a", "one", 2]]


def test_the_default_timestamp_extractor_is_found_by_name(tmp_path):
    config = {"default.timestamp.extractor": "value"}
    outcome = play(tmp_path, [source(), TO_OUT], [["in", "a", "x@42", 1], ["in", "a", "x", 2]], config=config)
    assert sent(outcome) == [["a", "x@42", 42]]
    assert outcome.dropped == 1


def test_a_table_becomes_a_stream_with_another_key(tmp_path):
    ops = [{"op": "table", "topic": "in"}, {"op": "to_stream", "fn": ["concat", "$k", "$v"]}, TO_OUT]
    assert sent(play(tmp_path, ops, [["in", "a", "1", 1]])) == [["a1", "1", 1]]


def test_fail_on_raises_what_fail_raises(tmp_path):
    for op in ("process", "process_values"):
        ops = [source(), {"op": op, "processor": {"name": "fail_on", "value": "bad"}}, TO_OUT]
        outcome = play(tmp_path, ops, [["in", "a", "good", 1], ["in", "a", "bad", 2]])
        assert sent(outcome) == [["a", "good", 1]]
        assert outcome.steps[1].failure is not None
        assert isinstance(outcome.steps[1].failure.error.__cause__, Boom)


def test_a_punctuator_cancels_itself_after_its_limit(tmp_path):
    processor = {"name": "punctuate", "type": "wall_clock", "interval": 10, "limit": 2}
    ops = [source(), {"op": "process", "processor": processor}, TO_OUT]
    outcome = play(tmp_path, ops, [10, 10, 10])
    assert sent(outcome) == [["punct", "wall_clock 10 0", 10], ["punct", "wall_clock 20 0", 20]]


def test_an_anchored_schedule_fires_on_its_grid(tmp_path):
    processor = {"name": "punctuate", "type": "wall_clock", "interval": 10, "start": 3}
    ops = [source(), {"op": "process", "processor": processor}, TO_OUT]
    assert sent(play(tmp_path, ops, [2, 1, 9, 1])) == [["punct", "wall_clock 3 0", 3], ["punct", "wall_clock 13 0", 13]]


def test_the_wall_clock_starts_where_the_file_says(tmp_path):
    processor = {"name": "apply", "fn": ["list", ["pair", "$k", ["concat", "$wall_clock"]]]}
    ops = [source(), {"op": "process", "processor": processor}, TO_OUT]
    assert sent(play(tmp_path, ops, [["in", "a", "1", 1], 5, ["in", "a", "1", 1]], wall_clock=1000)) == [
        ["a", "1000", 1],
        ["a", "1005", 1],
    ]


def test_a_processor_may_be_used_for_values_only(tmp_path):
    processor = {"name": "apply", "fn": ["list", ["concat", "$k", "$v", "$ts"], "$v"]}
    ops = [source(), {"op": "process_values", "processor": processor}, TO_OUT]
    assert sent(play(tmp_path, ops, [["in", "a", "1", 5]])) == [["a", "a15", 5], ["a", "1", 5]]


def test_stores_without_logging_have_no_changelog(tmp_path):
    ops = [source(), {"op": "group_by_key"}, {"op": "count", "materialized": {"store": "c", "logging": False}}]
    outcome = play(tmp_path, ops, [["in", "a", "1", 5]])
    assert outcome.steps[0].out == []
    assert outcome.internal_topics == {}


def test_papi_sources_and_sinks_take_serdes_extractors_patterns_and_expressions(tmp_path):
    ops = [
        {"op": "add_source", "name": "src", "pattern": "in.*", "value": "long", "extractor": "wallclock"},
        {"op": "add_processor", "name": "p", "processor": {"name": "with_timestamp", "plus": 0}, "parents": ["src"]},
        {"op": "add_sink", "name": "k", "topic_fn": ["concat", "out", "-", "$k"], "value": "long", "parents": ["p"]},
    ]
    numbers = {"key": "string", "value": "long"}
    outcome = play(tmp_path, ops, [["in1", "a", 7, 5]], topics={"in1": numbers, "out-a": numbers}, api="papi")
    assert [record[:2] for record in sent(outcome, "out-a")] == [["a", 7]]


def test_headers_keep_their_order_and_null_values(tmp_path):
    headers = [["h", "1"], ["h", None]]
    outcome = play(tmp_path, [source(), TO_OUT], [["in", "a", "1", 5, headers]])
    assert sent(outcome) == [["a", "1", 5, headers]]


def test_raw_bytes_are_shown_as_hex(tmp_path):
    raw = {"key": "hex", "value": "bytes"}
    ops = [source(consumed={"key": "bytes", "value": "bytes"}), {"op": "peek", "tag": "t"}]
    ops.append({"op": "to", "topic": "out", "produced": {"key": "bytes", "value": "bytes"}})
    outcome = play(tmp_path, ops, [["in", "00", "ff", 5]], topics={"in": raw, "out": raw})
    assert sent(outcome) == [["00", "ff", 5]]
    assert sent(outcome, "#t") == [["00", "ff", None]]


@pytest.mark.parametrize(
    ("store", "commands"),
    [
        (
            {"kind": "kv"},
            {
                "put a 1": "ok",
                "put b 2": "ok",
                "count": "2",
                "prefix a": "a=1",
                "reverse_all": "b=2,a=1",
                "put a -": "ok",
            },
        ),
        (
            {"kind": "timestamped_kv", "memory": True},
            {"put a 1": "ok", "get a": "1@0", "delete a": "1@0", "get a ": "null"},
        ),
        (
            {"kind": "session", "retention": 100},
            {"put a x 1 5": "ok", "find_range a b 0 9": "a@1/5=x", "remove a 1 5": "ok", "fetch a": ""},
        ),
    ],
)
def test_store_scripts_answer_in_text(tmp_path, store, commands):
    ops = [
        {"op": "add_state_store", "store": STORE | store},
        source(),
        {"op": "process", "processor": {"name": "store_script", "store": "st"}, "stores": ["st"]},
        TO_OUT,
    ]
    steps = [["in", "k", command.strip(), index] for index, command in enumerate(commands)]
    assert [record[1] for record in sent(play(tmp_path, ops, steps))] == list(commands.values())
