"""Generated code and the interpreter on the same random topologies and inputs: whatever can be seen must be the same.

Compared record by record: what is sent to every topic (results, repartition topics, changelogs, dead letters), every call of a
user's function in its order, dropped records by operator and reason, the errors that end a task, the rows of the stores.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from hypothesis import HealthCheck, Phase, event, example, given, settings
from hypothesis import strategies as st
from tests.unit.streamfleet.compiler import random_topologies as random
from tests.unit.streamfleet.compiler.chunk_drivers import ApartDriver, ChunkDriver
from tests.unit.streamfleet.compiler.random_dsl import dsl_topology
from tests.unit.streamfleet.compiler.random_graphs import papi_topology
from tests.unit.streamfleet.compiler.random_topologies import Input, Setting, Step
from tests.unit.streamfleet.compiler.random_user_code import Choosing, Functions, PassingOn

import streamfleet as sf
from streamfleet.testing.recording_producer import ProducedRecord

Make = Callable[..., sf.Topology]
KEYS = ["a", "b", "c"]
EXAMPLES = int(os.environ.get("EXAMPLES", "60"))
"""Of each property. A search for defects takes some thousand."""


@dataclass
class Seen:
    """What there is to see of one run."""

    calls: list[Any]
    sent: list[list[Any]] = field(default_factory=list)
    error: Any = None
    closing_error: Any = None
    dropped: Any = None
    stores: Any = None
    sub_topologies: int = 0
    """0: the topology could not be built."""


def config_of(setting: Setting, functions: Functions, execution: str) -> sf.StreamsConfig:
    chosen = Choosing(functions)
    return sf.StreamsConfig(
        application_id="app",
        topology_execution=execution,
        default_key_serde=random.TEXT,
        default_value_serde=random.TEXT,
        dsl_store_kind="in_memory",
        processing_handler=chosen if setting.processing == "chosen" else setting.processing,
        production_handler=chosen if setting.production == "chosen" else setting.production,
        deserialization_handler=setting.deserialization,
        dead_letter_topic="dead" if setting.dead_letters else None,
        statestore_cache_max_bytes=10_000 if setting.cache else 0,
        changelog_deduplicate=setting.deduplicate,
        topology_optimization="all" if setting.optimized else "none",
        processor_wrapper=PassingOn() if setting.wrapped else None,
    )


def run(make: Make, inputs: list[Input], setting: Setting, execution: str) -> Seen:
    seen = Seen([])
    functions = Functions(seen.calls)
    config = config_of(setting, functions, execution)
    try:
        topology = make(functions, config, extractor=setting.extractor)
        seen.sub_topologies = len(topology.sub_topologies())
        driver = (ApartDriver if setting.apart else ChunkDriver)(topology, config)
    except Exception as error:  # not every combination is allowed; a processor may fail in its `init`
        seen.error = _told(error)
        return seen
    try:
        _play(driver, inputs, setting.chunk, seen)
        seen.stores = {name: _rows(store) for name, store in driver.stores().items()}
    except Exception as error:
        seen.error = _told(error)
        seen.sent.append([_shown(record) for record in driver.drain()])
    finally:
        seen.dropped = dict(driver.metrics().dropped_records)
        try:
            driver.close()
        except Exception as error:
            seen.closing_error = _told(error)
    return seen


def _play(driver: ChunkDriver, inputs: list[Input], chunk: int, seen: Seen) -> None:
    known = driver.known_topics()
    chosen = [each for each in inputs if each.topic in known]
    for start in range(0, len(chosen), chunk):
        driver.pipe_chunk(chosen[start : start + chunk])
        driver.advance_wall_clock(3)
        seen.sent.append([_shown(record) for record in driver.drain()])


def _shown(record: ProducedRecord) -> tuple[Any, ...]:
    # How an error came about is told in other frames by either execution.
    headers = tuple(header for header in record.headers if not header[0].endswith(".stacktrace"))
    return record.topic, record.partition, record.key, record.value, record.timestamp, headers


def _told(error: BaseException | None) -> Any:
    """An error with what it is about, and its causes."""
    if error is None:
        return None
    place = [getattr(error, name, None) for name in ("operator", "topic", "partition", "offset")]
    return type(error).__name__, str(error), place, getattr(error, "__notes__", []), _told(error.__cause__)


def _rows(store: Any) -> Any:
    if isinstance(store, sf.VersionedKeyValueStore):
        return [[store.get(key, as_of=time) for time in (*range(62), None)] for key in KEYS]
    if not hasattr(store, "all") and not hasattr(store, "fetch_range"):  # a buffer of what is held back
        return list(store._rows.scan(b"", None))
    with store.fetch_range(None, None) if isinstance(store, sf.SessionStore) else store.all() as rows:
        return list(rows)


def check(make: Make, inputs: list[Input], setting: Setting) -> None:
    compiled, interpreted = (run(make, inputs, setting, execution) for execution in ("compiled", "interpreted"))
    event(f"programs: {compiled.sub_topologies if setting.apart else min(compiled.sub_topologies, 1)}")
    assert compiled.sent == interpreted.sent
    assert compiled.error == interpreted.error
    assert compiled.calls == interpreted.calls
    assert compiled.dropped == interpreted.dropped
    assert compiled.stores == interpreted.stores
    assert compiled.closing_error == interpreted.closing_error


many = settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


JOINS_OF_JOINED = [Step("map_values", on=1), *[Step("join_stream", on=1, other=2)] * 2]
"""A record made for a child, and another one for a child of that child: each needs a variable of its own."""
BRANCHES_TO_NOTHING = [*[Step("filter")] * 7, Step("split", n=1)]

REKEYED_AND_JOINED = [
    Step("select_key", n=1),
    Step("count", on=2),
    Step("group_table", n=2),
    Step("join_stream", on=2, other=1),
]
"""Several programs, with repartition topics between them."""

FORWARD_IN_INIT = [Step("process", n=8), Step("filter", on=2)]
"""What is behind the processor is not initialised yet, be it written into the generated function or not."""


chains = st.lists(random.steps, min_size=1, max_size=12)


@many
@example(FORWARD_IN_INIT, [Input(random.IN, "a", b"x", 1)], Setting(processing="continue"))
@example(JOINS_OF_JOINED, [Input(random.MORE, "a", b"", 1)], Setting())
@example(REKEYED_AND_JOINED, [Input(random.IN, "a", b"xy", 1), Input(random.MORE, "a", b"z", 2)], Setting(apart=True))
@example(BRANCHES_TO_NOTHING, [Input(random.IN, "a", b"x", 1)], Setting())
@given(chains, st.lists(random.inputs, max_size=14), random.settings)
def test_chains_of_operators_do_the_same(steps, inputs, setting):
    check(partial(dsl_topology, steps), inputs, setting)


@many
@given(st.lists(random.papi_nodes, min_size=1, max_size=10), st.lists(random.inputs, max_size=12), random.settings)
def test_graphs_of_processors_do_the_same(nodes, inputs, setting):
    check(partial(papi_topology, nodes), inputs, setting)


JOINS = ("stream_join", "stream_table_join", "table_join", "foreign_key_join")


def is_join(node: Any) -> bool:
    return type(getattr(node, "supplier", None)).__module__.rpartition(".")[2] in JOINS


def test_the_random_topologies_have_several_programs_and_joins_often_enough():
    """Of what the search above is given: it would find nothing in chains of one program without a join."""
    found = []

    @settings(max_examples=200, database=None, derandomize=True, phases=[Phase.generate])
    @given(chains, random.settings)
    def look(steps, setting):
        functions = Functions([])
        try:
            topology = dsl_topology(steps, functions, config_of(setting, functions, "compiled"), extractor=False)
        except sf.TopologyError:
            found.append((0, False))
            return
        nodes = [node for part in topology.sub_topologies() for node in part.nodes]
        found.append((sum(part.global_store is None for part in topology.sub_topologies()), any(map(is_join, nodes))))

    look()
    share = lambda fits: sum(map(fits, found)) / len(found)
    assert share(lambda each: each[0] > 0) > 0.8, "most can be built"
    assert share(lambda each: each[0] > 2 and each[1]) > 0.25, "several programs and a join"
