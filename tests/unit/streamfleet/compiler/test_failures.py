from __future__ import annotations

from typing import Any

import pytest

from streamfleet.compiler.compiled import CompiledProgram
from streamfleet.compiler.interpreter import Interpreter
from streamfleet.errors import ProcessingError, SerializationError
from streamfleet.processor.handlers import (
    HandlerResponse,
    HandlerResult,
    LogAndContinueProcessing,
    LogAndFailProcessing,
    ProcessingHandler,
)
from streamfleet.records import ProducerRecord, Record

RECORD: Record[str, str] = Record("k", "v", 7, (("h", b"1"),))


class Asked(ProcessingHandler):
    def __init__(self, answer):
        self.answer = answer
        self.calls: list[Any] = []

    def handle(self, context, record, error):
        self.calls.append((context, record, error))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture(params=[Interpreter, CompiledProgram])
def start(request, environment):
    """Either execution: what follows an error must not depend on it."""

    def start_program(graph):
        program = request.param(graph.build(), environment)
        program.init()
        return program

    return start_program


def forward(context, record):
    context.forward(record)


def fail(context, record):
    raise RuntimeError("boom")


def test_error_is_wrapped_with_operator_and_input_record(graph, start):
    graph.source("s").processor("p", fail, "s")
    program = start(graph)
    with pytest.raises(ProcessingError) as caught:
        program.process("s", RECORD)
    error = caught.value
    assert (error.operator, error.topic, error.partition, error.offset) == ("p", "in", 3, 42)
    assert str(error).startswith("operator raised RuntimeError: boom (operator p; topic in, partition 3, offset 42); ")
    assert "processing.exception.handler" in str(error)
    assert isinstance(error.__cause__, RuntimeError)


def test_only_the_innermost_operator_is_asked(graph, start, environment):
    environment.processing_handler = Asked(HandlerResponse.FAIL)
    graph.source("s").processor("p", forward, "s").processor("q", fail, "p")
    program = start(graph)
    with pytest.raises(ProcessingError) as caught:
        program.process("s", RECORD)
    assert caught.value.operator == "q"
    assert [context.operator for context, _, _ in environment.processing_handler.calls] == ["q"]


def test_continue_leaves_out_the_record_and_counts_it_once(graph, start, environment):
    seen: list[Any] = []

    def forward_twice(context, record):
        context.forward(record)
        context.forward(record.with_value("second"))

    def fail_on_v(context, record):
        if record.value == "v":
            raise RuntimeError("boom")
        seen.append(record.value)

    environment.processing_handler = LogAndContinueProcessing()
    graph.source("s").processor("p", forward_twice, "s").processor("q", fail_on_v, "p")
    start(graph).process("s", RECORD)
    assert environment.dropped == [("q", "processing error")]
    assert seen == ["second"]


def test_handler_is_told_the_record_and_where_it_came_from(graph, start, environment):
    handler = environment.processing_handler = Asked(HandlerResponse.CONTINUE)
    graph.source("s").processor("p", fail, "s")
    start(graph).process("s", RECORD)
    context, record, error = handler.calls[0]
    assert record == RECORD and str(error) == "boom"
    assert (context.operator, context.topic, context.partition, context.offset) == ("p", "in", 3, 42)
    assert (context.timestamp, context.headers, context.raw_key) == (7, (("h", b"1"),), b"raw-k")


@pytest.mark.parametrize("response", [HandlerResponse.CONTINUE, HandlerResponse.FAIL])
def test_dead_letters_are_sent_before_the_answer_is_carried_out(graph, start, environment, response):
    letter = ProducerRecord("dlq", b"k", b"v", 7)
    environment.processing_handler = Asked(HandlerResult(response, (letter,)))
    graph.source("s").processor("p", fail, "s")
    program = start(graph)
    if response is HandlerResponse.FAIL:
        with pytest.raises(ProcessingError):
            program.process("s", RECORD)
    else:
        program.process("s", RECORD)
    assert environment.sender.dead_letters == [letter]


def test_built_in_handler_writes_the_raw_input_record_to_the_dead_letter_topic(graph, start, environment):
    environment.config = environment.config.with_(dead_letter_topic="dlq")
    environment.processing_handler = LogAndFailProcessing()
    graph.source("s").processor("p", fail, "s")
    program = start(graph)
    with pytest.raises(ProcessingError):
        program.process("s", RECORD)
    (letter,) = environment.sender.dead_letters
    assert (letter.topic, letter.key, letter.value, letter.timestamp) == ("dlq", b"raw-k", b"raw-v", 7)
    assert letter.headers[0] == ("h", b"1")
    assert ("__streams.errors.message", b"boom") in letter.headers


@pytest.mark.parametrize("answer", [ValueError("handler is broken"), None])
def test_handler_that_fails_or_does_not_answer_stops_the_task(graph, start, environment, answer):
    handler = environment.processing_handler = Asked(answer)
    graph.source("s").processor("p", forward, "s").processor("q", fail, "p")
    program = start(graph)
    with pytest.raises(ProcessingError, match="the processing handler Asked"):
        program.process("s", RECORD)
    assert len(handler.calls) == 1


def test_error_of_a_sink_is_decided_by_the_operator_above_it(graph, start, environment):
    environment.sender.error = SerializationError("does not fit", operator="k")
    handler = environment.processing_handler = Asked(HandlerResponse.CONTINUE)
    graph.source("s").processor("p", forward, "s").sink("k", "out", "p")
    start(graph).process("s", RECORD)
    assert handler.calls[0][0].operator == "p"
    assert environment.dropped == [("p", "processing error")]


def test_error_of_a_sink_is_not_wrapped_and_not_asked_about_twice(graph, start, environment):
    environment.sender.error = SerializationError("does not fit", operator="k")
    handler = environment.processing_handler = Asked(HandlerResponse.FAIL)
    graph.source("s").processor("p", forward, "s").processor("q", forward, "p").sink("k", "out", "q")
    program = start(graph)
    with pytest.raises(SerializationError) as caught:
        program.process("s", RECORD)
    assert caught.value is environment.sender.error
    assert len(handler.calls) == 1


def test_processing_error_raised_by_user_code_is_asked_about_like_any_other(graph, start, environment):
    def raise_ours(context, record):
        raise ProcessingError("mine")

    environment.processing_handler = LogAndContinueProcessing()
    graph.source("s").processor("p", raise_ours, "s")
    start(graph).process("s", RECORD)
    assert environment.dropped == [("p", "processing error")]


def test_error_of_a_punctuator_is_handled_without_record(graph, start, environment):
    handler = environment.processing_handler = Asked(HandlerResponse.FAIL)
    environment.record_context = None
    graph.source("s").processor("p", forward, "s")
    program = start(graph)
    with pytest.raises(ProcessingError, match=r"punctuator raised ZeroDivisionError: .* \(operator p\)"):
        program.punctuate("p", lambda timestamp: timestamp // 0, 50)
    assert handler.calls[0][1] is None
    assert handler.calls[0][0].topic is None
