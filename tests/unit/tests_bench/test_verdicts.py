"""A bench says with its exit code what it says in words."""

import pytest
from tests.bench import rebalance, scale_out


def test_rebalances_as_quick_as_those_of_a_bare_client_will_do():
    quick = {interval_ms: (float(a), float(b)) for interval_ms, (a, b) in rebalance.BARE_CLIENT_MS.items()}
    assert rebalance.verdict(quick) == 0


@pytest.mark.parametrize("slow", [(309 * 1.25 + 31, 105), (309, 105 * 1.25 + 31)])
def test_a_slow_rebalance_is_a_failure(slow, capsys):
    assert rebalance.verdict({200: slow}) == 1
    assert "NOT MET" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("lags", "gaps", "code"),
    [
        ({"0_1": 10_000, "0_2": 0}, {0: 0.2, 1: 1.0}, 0),
        ({"0_1": 10_001}, {0: 0.2}, 1),
        ({"0_1": None}, {0: 0.2}, 1),
        ({"0_1": 0}, {0: 1.1, 1: 0.2}, 1),
    ],
)
def test_a_scale_out_fails_by_tasks_that_moved_early_and_by_partitions_that_were_silent(lags, gaps, code, capsys):
    assert scale_out.verdict(lags, gaps) == code
    assert ("NOT MET" in capsys.readouterr().out) == bool(code)
