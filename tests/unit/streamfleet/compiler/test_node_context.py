from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from streamfleet.compiler.node_context import NodeContext
from streamfleet.errors import StateStoreError, StreamsError
from streamfleet.processor.api import PunctuationType
from streamfleet.records import Record, RecordContext, RecordMetadata


class OneRow:
    name = "rates"

    def get(self, key):
        return {"a": 1}.get(key)

    def put(self, key, value):
        raise AssertionError("was written")


@pytest.fixture
def context(environment):
    return NodeContext(environment, "p", ("counts",), {})


def test_connected_store_is_given_out(environment, context):
    environment.stores["counts"] = OneRow()
    assert context.get_state_store("counts") is environment.stores["counts"]


def test_store_that_is_not_connected_is_refused_with_the_names_that_are(environment, context):
    environment.stores["other"] = OneRow()
    with pytest.raises(
        StreamsError, match="operator p has no store 'other', its stores are: counts; connect the store"
    ):
        context.get_state_store("other")


def test_global_store_needs_no_connection_and_is_read_only(environment, context):
    environment.global_stores["rates"] = OneRow()
    store = context.get_state_store("rates")
    assert store.get("a") == 1
    with pytest.raises(StateStoreError, match="store rates is global and read only, put is not possible"):
        store.put("a", 2)


@pytest.mark.parametrize("interval", [1500, timedelta(seconds=1.5)])
def test_schedule_takes_durations_or_milliseconds(environment, context, interval):
    callback: Any = print
    context.schedule(interval, PunctuationType.STREAM_TIME, callback, start=10)
    assert environment.scheduled == [("p", 1500, PunctuationType.STREAM_TIME, callback, 10)]


@pytest.mark.parametrize("interval", [0, -1, timedelta(microseconds=999)])
def test_interval_below_one_millisecond_is_refused(context, interval):
    with pytest.raises(ValueError, match="interval of a punctuation|punctuation every"):
        context.schedule(interval, PunctuationType.WALL_CLOCK_TIME, print)


def test_transformer_context_cannot_forward(context):
    with pytest.raises(StreamsError, match="operator p tries to forward"):
        context.without_forward().forward(Record("k", "v", 1))


def test_another_record_context_lasts_for_a_block(environment, context):
    before = environment.record_context
    with context.as_record(RecordContext("other", 0, 1, 9)):
        assert context.record_metadata() == RecordMetadata("other", 0, 1)
    assert environment.record_context is before


def test_record_metadata_is_that_of_the_input_record(context):
    assert context.record_metadata() == RecordMetadata("in", 3, 42)


def test_punctuator_has_no_record_metadata(environment, context):
    environment.record_context = RecordContext("", -1, -1, 50)
    assert context.record_metadata() is None
    assert context.record_context is None


def test_context_tells_times_names_and_requests(environment, context):
    context.commit()
    context.drop("null key")
    context.set_processor_metadata("closed", 5)
    assert (context.current_stream_time_ms(), context.current_system_time_ms()) == (100, 200)
    assert (context.application_id, str(context.task_id), context.node_name) == ("app", "0_3", "p")
    assert environment.commits == 1
    assert environment.dropped == [("p", "null key")]
    assert context.processor_metadata("closed") == 5
