"""A bench that misses its bound is a failure of `make bench`, as those of the other parts are."""

import pytest
from tests.bench import dagster_locations


@pytest.mark.parametrize(("dear", "code", "word"), [(4.0, 0, "met"), (4.1, 1, "NOT MET")])
def test_a_scale_run_that_costs_more_than_its_bound_fails_when_all_sizes_were_measured(
    monkeypatch, capsys, dear, code, word
):
    asked = []
    monkeypatch.setattr(
        dagster_locations, "measure", lambda count: asked.append(count) or (dear if count == 3 else 1.0)
    )
    assert dagster_locations.main([]) == code
    assert asked == [3, 100, 1000]
    assert word in capsys.readouterr().out
