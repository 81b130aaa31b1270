import copy

import pytest
from tests.conformance import scenario
from tests.conformance.recorder import agreement
from tests.conformance.run import SCENARIOS


@pytest.fixture
def recorded():
    return scenario.load(SCENARIOS / "aggregate-count.json")


def changed(recorded, change):
    data = copy.deepcopy(recorded.data)
    change(data)
    return scenario.Scenario(recorded.path, recorded.name, recorded.family, data)


def test_a_recording_agrees_with_itself(recorded):
    assert list(agreement.differences(recorded, recorded)) == []


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda data: data["steps"][0]["out"].pop(), "step 0, topic"),
        (lambda data: data["steps"].pop(), "steps"),
        (lambda data: data.update(dropped=99), "dropped"),
        (lambda data: data["stores"].clear(), "store "),
        (lambda data: data["internal_topics"].clear(), "internal_topics"),
        (lambda data: data.update(error={"at": "build", "class": "TopologyException"}), "before any step"),
        (lambda data: data["describe"].insert(2, "    Source: other (topics: [x])"), "describe"),
    ],
)
def test_whatever_differs_is_found(recorded, change, found):
    (difference, *_) = agreement.differences(recorded, changed(recorded, change))
    assert found in difference
