"""A short seeded run with standbys, warm-ups and probing. Longer ones, and other seeds: tests/e2e."""

import pytest
from tests.ledger.run import run_schedule, summary
from tests.ledger.variants import Variant
from tests.ledger.workload import LedgerSpec


@pytest.mark.timeout(240)
def test_nothing_is_lost_or_doubled_while_copies_become_tasks_and_tasks_become_copies(tmp_path, capsys):
    spec = LedgerSpec(seed=220, keys=12, records_per_key=100)
    kinds = ("kill", "leave", "probe")
    outcome = run_schedule(
        spec, 28, "exactly_once_v2", print, directory=tmp_path, kinds=kinds, variant=Variant(standbys=1)
    )
    assert {fault.kind for fault in outcome.faults} == set(kinds)
    assert summary(outcome.anomalies) == []
    assert outcome.copies.promotions > 0
    assert outcome.copies.warm_ups_caught_up > 0
    assert outcome.copies.probes > 0
