"""The harness can fail: engine defects that it must find, each in the scenario where it does harm."""

import pytest
from tests.ledger.mutations import MUTATIONS
from tests.ledger.scenarios import SCENARIOS, run_scenario

SEEDS = (1, 2, 3)
"""Within so many tries a defect must show: some need two things to happen within a tenth of a second."""
HARM = {"lost", "duplicate", "phantom", "wrong value", "closed form", "store differs from changelog", "two owners"}
HARM |= {"commit overdue", "resumed elsewhere", "needless repeat", "old state"}


def test_every_mutation_has_a_scenario():
    assert SCENARIOS.keys() == MUTATIONS.keys()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("mutation", sorted(MUTATIONS))
def test_the_defect_is_found(mutation):
    found = set()
    for seed in SEEDS:
        found = {anomaly.kind for anomaly in run_scenario(SCENARIOS[mutation], seed=seed, mutation=mutation)}
        if found & HARM:
            break
    assert found & HARM


@pytest.mark.timeout(600)
@pytest.mark.parametrize("mutation", sorted({SCENARIOS[mutation]: mutation for mutation in MUTATIONS}.values()))
def test_the_same_faults_do_no_harm_without_the_defect(mutation):
    assert [str(anomaly) for anomaly in run_scenario(SCENARIOS[mutation], seed=SEEDS[0])] == []
