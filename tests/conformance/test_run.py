"""The runner itself: it must fail when the engine and a recording disagree, and survive whatever files it is given."""

import json
import re
import sys

import pytest
from tests.conformance import deviations, report, results, run, scenario
from tests.conformance.run import SCENARIOS
from tests.conformance.scenario import Level
from tests.conformance.settings import Execution

from streamfleet.compiler.interpreter import SourceRuntime

RECORDED = "stateless-map-values"
WITH_STORE = "aggregate-count"


def recorded(name):
    return json.loads((SCENARIOS / f"{name}.json").read_text())


def run_on(tmp_path, capsys, *files, arguments=()):
    """Exit code and output of the command on a directory with these files (name -> text or data)."""
    for name, content in files:
        (tmp_path / name).write_text(content if isinstance(content, str) else json.dumps(content))
    code = run.main([str(tmp_path), *arguments])
    return code, capsys.readouterr().out


def last_line(output):
    return output.rstrip("\n").splitlines()[-1]


def judged(tmp_path, data, deviation=None):
    path = tmp_path / "x.json"
    path.write_text(json.dumps(data))
    return results.judge(scenario.load(path), deviation)


def test_a_recording_that_agrees_passes(tmp_path, capsys):
    code, output = run_on(tmp_path, capsys, ("a.json", recorded(RECORDED)))
    assert code == 0
    assert last_line(output) == "1 passed, 0 failed"


def test_a_record_that_differs_fails_the_run_and_is_shown_with_its_step(tmp_path, capsys):
    data = recorded(RECORDED)
    step = next(index for index, step in enumerate(data["steps"]) if step["out"])
    data["steps"][step]["out"][0][2] = "something else"
    code, output = run_on(tmp_path, capsys, ("a.json", data), ("b.json", recorded(WITH_STORE)))
    assert code == 1
    assert last_line(output) == "1 passed, 1 failed"
    assert f"FAILED {RECORDED} at records" in output
    assert re.search(rf"step {step} pipe .*\n +expected .*something else.*\n +got ", output)


def break_out(data):
    data["steps"][0]["out"] = []


def break_timestamp(data):
    data["steps"][0]["out"][-1][3] += 1


def break_step_error(data):
    data["steps"][0]["error"] = {"at": "step", "class": "StreamsException"}


def break_dropped(data):
    data["steps"][0]["dropped"] = 7


def break_total(data):
    data["dropped"] += 1


def break_internal(data):
    changelog = next(record for step in data["steps"] for record in step["out"] if record[0].endswith("-changelog"))
    changelog[2] = "00"


def break_row(data):
    next(iter(data["stores"].values()))["rows"].pop()


def break_store_name(data):
    data["stores"]["another"] = {"kind": "kv", "rows": []}


def break_description(data):
    data["describe"] = [line.replace("(topics: [in])", "(topics: [in, more])") for line in data["describe"]]


def break_tasks(data):
    data["subtopologies"]["0"]["tasks"] += 1


def break_topic_settings(data):
    next(iter(data["internal_topics"].values()))["configs"]["cleanup.policy"] = "delete"


@pytest.mark.parametrize(
    ("breaks", "levels"),
    [
        (break_timestamp, {Level.RECORDS}),
        (break_step_error, {Level.RECORDS}),
        (break_dropped, {Level.DROPPED}),
        (break_total, {Level.DROPPED}),
        (break_internal, {Level.INTERNAL}),
        (break_out, {Level.RECORDS, Level.INTERNAL}),
        (break_row, {Level.STORES}),
        (break_store_name, {Level.STORES}),
        (break_description, {Level.TOPOLOGY}),
        (break_tasks, {Level.TOPOLOGY}),
        (break_topic_settings, {Level.TOPOLOGY}),
    ],
)
def test_a_broken_expectation_fails_exactly_its_level(tmp_path, breaks, levels):
    data = recorded(WITH_STORE)
    breaks(data)
    result = judged(tmp_path, data)
    assert result.verdict is results.Verdict.FAILED
    assert {level for level, differences in result.levels.items() if differences} == levels


def test_an_execution_that_fails_alone_is_named_and_fails_the_scenario(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(SourceRuntime, "process", lambda source, record: None)
    code, output = run_on(tmp_path, capsys, ("a.json", recorded(RECORDED)))
    assert code == 1
    assert "records, interpreted, step 0" in output
    assert "records, compiled" not in output
    result = judged(tmp_path, recorded(RECORDED))
    assert not any(result.executions[Execution.COMPILED].values())
    assert result.executions[Execution.INTERPRETED][Level.RECORDS]


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("builderror-illegal-name", {"at": 0, "class": "TopologyException"}),
        ("builderror-illegal-name", {"at": "build", "class": "IllegalArgumentException"}),
        ("builderror-papi-unknown-parent", {"at": "driver", "class": "TopologyException"}),
        ("builderror-window-size-zero", {"at": 2, "class": "ConfigException"}),
    ],
)
def test_an_error_at_another_place_or_of_another_class_fails(tmp_path, name, error):
    assert judged(tmp_path, recorded(name)).verdict is results.Verdict.PASSED
    assert judged(tmp_path, recorded(name) | {"error": error}).verdict is results.Verdict.FAILED


def test_an_error_that_was_not_recorded_fails_every_level(tmp_path):
    data = recorded(WITH_STORE)
    data["topology"].append({"op": "to", "on": "nowhere", "topic": "out"})
    assert "no op has the id nowhere" in judged(tmp_path, data).note
    data["topology"][-1] = {"op": "stream", "topics": ["in", "more"]}
    result = judged(tmp_path, data)
    assert all(result.levels[level] for level in Level)


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        {"format": 1},
        recorded(RECORDED) | {"topology": [{"op": "no_such_op"}]},
        recorded(RECORDED) | {"topology": [{"op": "stream"}]},
        recorded(RECORDED) | {"topology": [{"op": "stream", "topics": ["in"]}, {"op": "map_values", "fn": ["nope"]}]},
        recorded(RECORDED) | {"topology": [{"op": "stream", "topics": ["in"], "consumed": {"key": "nope"}}]},
    ],
)
def test_a_malformed_file_is_a_failure_that_names_it_and_stops_nothing(tmp_path, capsys, content):
    code, output = run_on(tmp_path, capsys, ("broken.json", content), ("good.json", recorded(RECORDED)))
    assert code == 1
    assert "broken.json" in output
    assert last_line(output) == "1 passed, 1 failed"


def test_family_and_name_select_scenarios(tmp_path, capsys):
    files = [("a.json", recorded(RECORDED)), ("b.json", recorded(WITH_STORE))]
    assert last_line(run_on(tmp_path, capsys, *files, arguments=["--family", "aggregate"])[1]) == "1 passed, 0 failed"
    assert last_line(run_on(tmp_path, capsys, arguments=["--name", RECORDED])[1]) == "1 passed, 0 failed"
    assert run.main([str(tmp_path), "--family", "nope"]) == 2


def test_an_empty_directory_is_said_to_be_empty(tmp_path, capsys):
    assert run.main([str(tmp_path)]) == 2
    assert "no scenario files" in capsys.readouterr().err


def deviation(*levels):
    return deviations.Deviation(WITH_STORE, frozenset(levels), "because")


def test_a_deviation_excuses_its_own_levels_only(tmp_path):
    data = recorded(WITH_STORE)
    break_dropped(data)
    assert judged(tmp_path, data, deviation(Level.DROPPED)).verdict is results.Verdict.DEVIATING
    assert judged(tmp_path, data, deviation(Level.STORES)).verdict is results.Verdict.FAILED


def test_a_deviation_that_does_not_differ_any_more_fails(tmp_path):
    result = judged(tmp_path, recorded(WITH_STORE), deviation(Level.DROPPED))
    assert result.verdict is results.Verdict.FAILED
    assert "remove the entry" in result.note


def test_deviations_are_listed_apart_with_their_reason(capsys):
    result = results.Result("some-name", "some", results.Verdict.DEVIATING, note="because of this")
    report.write([result], sys.stdout, verbose=False)
    output = capsys.readouterr().out
    assert "deviates on purpose: some-name\n  because of this" in output
    assert last_line(output) == "0 passed, 0 failed"


@pytest.mark.parametrize(
    "text",
    [
        '[[deviation]]\nscenario = "a"\nlevels = ["records"]\nreason = " "',
        '[[deviation]]\nscenario = "a"\nlevels = []\nreason = "r"',
        '[[deviation]]\nscenario = "a"\nlevels = ["nope"]\nreason = "r"',
        '[[deviation]]\nlevels = ["records"]\nreason = "r"',
    ],
)
def test_an_incomplete_deviation_is_refused(tmp_path, text):
    path = tmp_path / "deviations.toml"
    path.write_text(text)
    with pytest.raises(ValueError):
        deviations.load(path)
