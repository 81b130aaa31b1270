"""Every recorded scenario, level by level."""

from functools import cache

import pytest
from tests.conformance import checks, deviations, results, scenario
from tests.conformance.run import SCENARIOS
from tests.conformance.settings import Execution

FILES = {path.stem: path for path in scenario.files_in(SCENARIOS)}
SCENARIO = {name: scenario.load(path) for name, path in FILES.items()}
DEVIATIONS = deviations.load()


@cache
def comparison(name):
    return checks.compare(SCENARIO[name])


@pytest.mark.parametrize(
    ("name", "execution", "level"),
    [
        pytest.param(name, execution, level, id=f"{name}-{execution.value}-{level.value}")
        for name, found in SCENARIO.items()
        for execution in Execution
        for level in found.levels
    ],
)
def test_the_engine_does_what_java_did(name, execution, level):
    if name in DEVIATIONS and level in DEVIATIONS[name].levels:
        verdict = results.judge(SCENARIO[name], DEVIATIONS[name]).verdict
        assert verdict is results.Verdict.DEVIATING, "deviations.toml says that it differs, but it does not"
    else:
        assert comparison(name).executions[execution][level] == []


def test_the_public_recordings_are_complete():
    assert len(FILES) == 231
    assert all(found.name == name and name.startswith(found.family) for name, found in SCENARIO.items())


def test_every_deviation_names_a_recorded_scenario_and_levels_it_has():
    for name, deviation in DEVIATIONS.items():
        assert deviation.levels <= set(SCENARIO[name].levels)
