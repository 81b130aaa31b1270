"""The generated code is what runs, everywhere and by default, and a developer can see it: in tracebacks."""

import linecache
import traceback

import pytest

import streamfleet as sf
from streamfleet.compiler.compiled import CompiledProgram
from streamfleet.compiler.interpreter import Interpreter
from streamfleet.ids import TaskId
from streamfleet.metrics import Metrics
from streamfleet.task.global_task import GlobalTask
from streamfleet.task.store_engines import StoreEngines
from streamfleet.task.stream_task import StreamTask, inputs_of
from streamfleet.testing import TopologyTestDriver
from streamfleet.testing.manual_clock import ManualClock
from streamfleet.testing.recording_producer import RecordingProducer

TEXT = sf.serdes.string()
CONFIG = sf.StreamsConfig(application_id="app", default_key_serde=TEXT, default_value_serde=TEXT)


def shout(value):
    return value.upper() + 1


def raising(**settings):
    builder = sf.StreamsBuilder()
    builder.global_table("places", store="places")
    builder.stream("in").filter(lambda key, value: True, name="all").map_values(shout, name="shout").to("out")
    return builder.build(CONFIG.with_(**settings))


def failure(config):
    with pytest.raises(sf.ProcessingError) as caught, TopologyTestDriver(raising(), config) as driver:
        driver.pipe_raw("in", b"k", b"v", 0)
    return caught.value


def test_a_traceback_shows_the_generated_line_above_the_line_of_the_user():
    error = failure(CONFIG)
    lines = "".join(traceback.format_exception(error.__cause__)).splitlines()
    (frame,) = (number for number, line in enumerate(lines) if "<streamfleet generated " in line)
    assert "in source_" in lines[frame]
    assert lines[frame + 1].strip().startswith("value_") and "shout(value)" in lines[frame + 1]
    assert any("return value.upper() + 1" in line for line in lines[frame:])
    told = "".join(traceback.format_exception(error))
    assert "shout(value)" in told and "operator shout; topic in, partition 0, offset 0" in told


def test_the_generated_line_is_still_shown_after_the_files_on_disk_were_looked_at_again():
    error = failure(CONFIG)
    linecache.checkcache()
    assert "shout(value)" in "".join(traceback.format_exception(error))


def test_the_interpreter_has_no_generated_line():
    error = failure(CONFIG.with_(topology_execution="interpreted"))
    told = "".join(traceback.format_exception(error))
    assert "<streamfleet generated " not in told and "return value.upper() + 1" in told


@pytest.mark.parametrize(
    ("settings", "program"),
    [
        ({}, CompiledProgram),
        ({"topology_execution": "compiled"}, CompiledProgram),
        ({"topology_execution": "interpreted"}, Interpreter),
    ],
)
def test_generated_code_is_what_every_task_runs_by_default(tmp_path, settings, program):
    config = CONFIG.with_(**settings)
    whole = raising().processor_topology("app", 1)
    parts = {"clock": ManualClock(0), "metrics": Metrics()}
    task = StreamTask(
        TaskId(1, 0),
        whole,
        inputs_of(whole, []),
        config,
        producer=RecordingProducer(),
        engines=StoreEngines(tmp_path / "task"),
        lag_of=lambda partition: 0,
        **parts,
    )
    assert type(task._program) is program
    entries = tuple(raising().global_stores.values())
    global_task = GlobalTask(entries, config, engines=StoreEngines(tmp_path / "global"), **parts)
    assert type(global_task._program) is program
    with TopologyTestDriver(raising(), config) as driver:
        assert type(driver._task._program) is type(driver._global_task._program) is program
