"""The Processor API ops of the scenario format as calls of Topology. The counterpart of `ops`, with the same shape."""

from __future__ import annotations

import re
from typing import Any

from tests.conformance import extractors, processors, specs
from tests.conformance.ops import Build, Op, OpFunction, topic_by


def _serdes(op: Op) -> dict[str, Any]:
    names = {"key": "key_serde", "value": "value_serde"}
    return {name: specs.serde(op[field]) for field, name in names.items() if field in op}


def add_source(op: Op, build: Build) -> Any:
    topics = re.compile(op["pattern"]) if "pattern" in op else op["topics"]
    chosen = _serdes(op)
    if "extractor" in op:
        chosen["timestamp_extractor"] = extractors.extractor(op["extractor"])
    if "reset" in op:
        chosen["offset_reset"] = op["reset"]
    return build.builder.add_source(op["name"], topics, **chosen)


def add_processor(op: Op, build: Build) -> Any:
    supplier = processors.processor(op["processor"], build.stores)
    return build.builder.add_processor(op["name"], supplier, *op["parents"])


def add_sink(op: Op, build: Build) -> Any:
    topic = topic_by(op["topic_fn"]) if "topic_fn" in op else op["topic"]
    return build.builder.add_sink(op["name"], topic, *op["parents"], **_serdes(op))


def add_state_store(op: Op, build: Build) -> Any:
    return build.builder.add_state_store(specs.store(op["store"]), *op.get("processors", ()))


def connect(op: Op, build: Build) -> Any:
    return build.builder.connect_processor_and_state_stores(op["processor"], *op["stores"])


def _add_store_with_source(method: str) -> OpFunction:
    def call(op: Op, build: Build) -> Any:
        return getattr(build.builder, method)(
            specs.store(op["store"]),
            op["name"],
            op["topic"],
            op["processor_name"],
            processors.processor(op["processor"], build.stores),
            **_serdes(op),
        )

    return call


PAPI_OPS: dict[str, OpFunction] = {
    "add_source": add_source,
    "add_processor": add_processor,
    "add_sink": add_sink,
    "add_state_store": add_state_store,
    "connect": connect,
    "add_global_store": _add_store_with_source("add_global_store"),
    "add_read_only_state_store": _add_store_with_source("add_read_only_state_store"),
}
