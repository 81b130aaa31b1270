from __future__ import annotations

from typing import Any

import pytest

from streamfleet.compiler.interpreter import Interpreter
from streamfleet.errors import ConfigError, ProcessingError, ProductionError, StreamsError, TopologyError
from streamfleet.records import Record

RECORD: Record[str, str] = Record("k", "v", 7, (("h", b"1"),))


def forward(context, record):
    context.forward(record)


def keep_in(seen: list[Any]):
    return lambda context, record: seen.append(record)


def test_record_visits_children_depth_first_in_order(graph, start):
    order: list[str] = []

    def visit(name):
        def process(context, record):
            order.append(name)
            context.forward(record)

        return process

    graph.source("s").processor("a", visit("a"), "s").processor("b", visit("b"), "s")
    graph.processor("a1", visit("a1"), "a").processor("a2", visit("a2"), "a")
    start(graph).process("s", RECORD)
    assert order == ["a", "a1", "a2", "b"]


def test_forward_to_a_named_child_reaches_only_that_child(graph, start):
    left: list[Any] = []
    right: list[Any] = []
    graph.source("s").processor("p", lambda context, record: context.forward(record, "right"), "s")
    graph.processor("left", keep_in(left), "p").processor("right", keep_in(right), "p")
    start(graph).process("s", RECORD)
    assert (left, right) == ([], [RECORD])


def test_forward_to_an_unknown_child_names_the_children(graph, start):
    graph.source("s").processor("p", lambda context, record: context.forward(record, "nobody"), "s")
    graph.processor("left", forward, "p").processor("right", forward, "p")
    with pytest.raises(ProcessingError) as caught:
        start(graph).process("s", RECORD)
    cause = caught.value.__cause__
    assert isinstance(cause, StreamsError)
    assert "'nobody'" in str(cause) and "left, right" in str(cause)


def test_children_see_the_forwarded_timestamp_and_headers_in_the_record_context(graph, start, environment):
    seen: list[Any] = []

    def observe(context, record):
        seen.append(context.record_context)

    graph.source("s").processor("p", lambda c, r: c.forward(r.with_timestamp(99).with_headers(())), "s")
    graph.processor("q", observe, "p")
    before = environment.record_context
    start(graph).process("s", RECORD)
    assert (seen[0].timestamp, seen[0].headers) == (99, ())
    assert (seen[0].topic, seen[0].offset, seen[0].value) == ("in", 42, b"raw-v")
    assert environment.record_context is before


def test_record_context_is_put_back_when_a_child_fails(graph, start, environment):
    def fail(context, record):
        raise RuntimeError("boom")

    graph.source("s").processor("p", lambda c, r: c.forward(r.with_timestamp(99)), "s").processor("q", fail, "p")
    before = environment.record_context
    program = start(graph)
    with pytest.raises(ProcessingError):
        program.process("s", RECORD)
    assert environment.record_context is before


def test_forward_from_init_is_refused(graph, start):
    """What is downstream is initialised later; a sink could send, and a filter not yet forward."""
    graph.source("s").processor("p", forward, "s", on_init=lambda context: context.forward(RECORD)).sink("k", "o", "p")
    with pytest.raises(StreamsError, match="operator p forwards a record in its init"):
        start(graph)


def test_forward_from_close_is_refused(graph, start):
    graph.source("s").processor("p", forward, "s", on_close=lambda context: context.forward(RECORD))
    graph.processor("q", forward, "p")
    with pytest.raises(StreamsError, match="after it was closed"):
        start(graph).close()


def test_all_processors_are_closed_when_one_fails_to_close(graph, start):
    closed: list[str] = []

    def fail(context):
        raise RuntimeError("boom")

    graph.source("s").processor("p", forward, "s", on_close=fail)
    graph.processor("q", forward, "p", on_close=lambda context: closed.append(context.node_name))
    with pytest.raises(StreamsError, match="operator p failed to close: boom"):
        start(graph).close()
    assert closed == ["q"]


def test_processors_are_initialised_parents_first_and_can_be_initialised_again(graph, start):
    order: list[str] = []
    remember = lambda context: order.append(context.node_name)
    seen: list[Any] = []
    graph.source("s").processor("p", forward, "s", on_init=remember).processor(
        "q", keep_in(seen), "p", on_init=remember
    )
    program = start(graph)
    program.close()
    program.init()
    program.process("s", RECORD)
    assert order == ["p", "q", "p", "q"]
    assert seen == [RECORD]


def test_error_in_init_names_the_operator(graph, start):
    def fail(context):
        raise RuntimeError("no config")

    graph.source("s").processor("p", forward, "s", on_init=fail)
    with pytest.raises(StreamsError, match="operator p failed to initialise: no config"):
        start(graph)


def test_sink_sends_the_record_it_was_given(graph, start, environment):
    graph.source("s").sink("k", "out", "s")
    start(graph).process("s", RECORD)
    assert environment.sender.sent == [("k", "out", RECORD)]


def test_topic_function_sees_the_record_context_with_the_record_s_own_timestamp(graph, start, environment):
    seen: list[Any] = []

    def topic(key, value, context):
        seen.append((context.topic, context.offset, context.timestamp))
        return f"out-{key}"

    graph.source("s").sink("k", topic, "s")
    start(graph).process("s", RECORD.with_timestamp(55))
    assert environment.sender.sent[0][1] == "out-k"
    assert seen == [("in", 42, 55)]


@pytest.mark.parametrize("topic", [lambda k, v, c: None, lambda k, v, c: 1 / 0])
def test_failing_topic_function_names_the_sink(graph, start, topic):
    graph.source("s").sink("k", topic, "s")
    program = start(graph)
    with pytest.raises(ProductionError, match="operator k"):
        program.process("s", RECORD)


def test_missing_serde_names_sink_and_setting(graph, environment):
    environment.config = environment.config.with_(default_value_serde=None)
    graph.source("s").sink("k", "out", "s")
    with pytest.raises(ConfigError, match=r"sink k has no value serde.*default\.value\.serde"):
        Interpreter(graph.build(), environment)


def test_supplier_that_returns_no_processor_is_refused(graph, environment):
    graph.source("s").supplied("p", lambda: "processor", "s")
    with pytest.raises(TopologyError, match="supplier of operator p returned str"):
        Interpreter(graph.build(), environment)


def test_fixed_key_processor_receives_and_forwards_fixed_key_records(graph, start, environment):
    graph.source("s").fixed_key("f", lambda c, r: c.forward(r.with_value(r.value + "!")), "s").sink("k", "out", "f")
    start(graph).process("s", RECORD)
    assert environment.sender.sent == [("k", "out", RECORD.with_value("v!"))]


def test_fixed_key_processor_cannot_change_the_key(graph, start):
    graph.source("s").fixed_key("f", lambda c, r: c.forward(type(r)("other", r.value, r.timestamp)), "s")
    program = start(graph)
    with pytest.raises(ProcessingError) as caught:
        program.process("s", RECORD)
    assert "operator f changed the key from 'k' to 'other'" in str(caught.value.__cause__)


def test_punctuator_of_a_fixed_key_processor_may_forward_a_record_it_has_kept(graph, start, environment):
    kept: list[Any] = []
    graph.source("s").fixed_key("f", lambda c, r: kept.append((c, r)), "s").sink("k", "out", "f")
    program = start(graph)
    program.process("s", RECORD)
    context, record = kept[0]
    program.punctuate("f", lambda timestamp: context.forward(record), 50)
    assert environment.sender.sent == [("k", "out", RECORD)]
