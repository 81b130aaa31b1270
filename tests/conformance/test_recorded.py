"""The engine against more recordings: of generated scenarios, chains of operators that nobody thought of, and of some by hand."""

from pathlib import Path

import pytest
from tests.conformance import results, scenario
from tests.conformance.recorder.generator.families import FAMILIES

FILES = scenario.files_in(Path(__file__).parent / "scenarios-recorded")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_engine_does_what_java_did(path):
    result = results.judge(scenario.load(path), None)
    differences = {level.value: found for level, found in result.levels.items() if found}
    assert (result.verdict, result.note, differences) == (results.Verdict.PASSED, "", {})


def test_every_family_has_recordings():
    assert {path.name.partition("-fuzz-")[0] for path in FILES if "-fuzz-" in path.name} == FAMILIES.keys()
