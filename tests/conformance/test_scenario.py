"""Loading of scenario files."""

import json

import pytest
from tests.conformance import scenario
from tests.conformance.kit import MalformedScenarioError
from tests.conformance.scenario import Level

MINIMAL = {
    "format": 1,
    "name": "x-y",
    "family": "x",
    "config": {"application.id": "app"},
    "topics": {"in": {"key": "string", "value": "string"}},
    "topology": [{"op": "stream", "topics": ["in"]}],
    "describe": ["Topologies:"],
}
STEP = {"pipe": ["in", "a", "b", 1], "out": []}


def write(tmp_path, **changes):
    path = tmp_path / "x-y.json"
    data = {field: value for field, value in (MINIMAL | changes).items() if value is not None}
    path.write_text(json.dumps(data))
    return path


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"format": 2}, "format 2"),
        ({"name": None}, "'name'"),
        ({"topics": []}, "'topics'"),
        ({"topics": {"in": {"key": "string"}}}, "topic in"),
        ({"topology": [{"id": "a"}]}, "op 0"),
        ({"describe": None}, "neither"),
        ({"error": {"at": 0}}, "'class'"),
        ({"steps": [{"out": []}]}, "step 0"),
        ({"steps": [STEP, {"advance": 1}]}, "step 1 has no 'out'"),
        ({"steps": [{"pipe": ["nope", "a", "b", 1], "out": []}]}, "nope"),
        ({"steps": [STEP]}, "final"),
    ],
)
def test_a_file_of_the_wrong_shape_is_refused_with_what_is_wrong(tmp_path, changes, complaint):
    with pytest.raises(MalformedScenarioError, match=complaint):
        scenario.load(write(tmp_path, **changes))


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff\xfe", b""])
def test_a_file_that_is_no_json_object_is_refused(tmp_path, content):
    path = tmp_path / "broken.json"
    path.write_bytes(content)
    with pytest.raises(MalformedScenarioError):
        scenario.load(path)


def test_levels_are_those_the_file_says_something_about(tmp_path):
    played = scenario.load(write(tmp_path, steps=[STEP], dropped=0, stores={}))
    assert played.levels == tuple(Level)
    assert scenario.load(write(tmp_path)).levels == (Level.TOPOLOGY,)
    at_driver = {"at": "driver", "class": "StreamsException"}
    assert scenario.load(write(tmp_path, error=at_driver, steps=[])).levels == (Level.RECORDS, Level.TOPOLOGY)
