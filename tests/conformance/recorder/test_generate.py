import json

import pytest
from tests.conformance.recorder import generate
from tests.conformance.recorder.generator.families import FAMILIES


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_a_seed_always_gives_the_same_scenario(family):
    assert generate.scenario(family, 3) == generate.scenario(family, 3)
    assert generate.scenario(family, 3)["topology"] != generate.scenario(family, 4)["topology"]


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_scenarios_use_only_ids_and_topics_that_they_have(family):
    for seed in range(20):
        scenario = generate.scenario(family, seed)
        known: set[str] = set()
        for op in scenario["topology"]:
            used = {op[field] for field in ("on", "with") if field in op}
            assert {name for name in used if not name.startswith("sp")} <= known
            known |= {op["id"]} if "id" in op else set()
        written = {step["pipe"][0] for step in scenario.get("steps", []) if "pipe" in step}
        assert written <= scenario["topics"].keys()
        assert json.loads(json.dumps(scenario)) == scenario
