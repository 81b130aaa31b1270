"""What a worker process of the ledger is told on its command line."""

import pytest
from tests.e2e.faults import faulty_worker
from tests.ledger.variants import Variant
from tests.ledger.worker import arguments, config

NEEDED = ["--bootstrap", "127.0.0.1:1", "--app", "ledger", "--state-dir", "state", "--guarantee", "at_least_once"]


@pytest.mark.parametrize("read", [arguments, faulty_worker.arguments])
def test_workers_run_without_caches_and_commit_often(read):
    chosen = config(read(NEEDED))
    assert (chosen.statestore_cache_max_bytes, chosen.windowed_emit_interval_ms, chosen.commit_interval_ms) == (
        0,
        0,
        100,
    )


def test_any_setting_can_be_given_by_its_name():
    chosen = config(arguments([*NEEDED, "--setting", "num.standby.replicas=1", "--setting", "commit.interval.ms=50"]))
    assert (chosen.num_standby_replicas, chosen.commit_interval_ms) == (1, 50)


@pytest.mark.parametrize("protocol", ["classic", "streams"])
@pytest.mark.parametrize("standbys", [0, 1])
def test_every_variant_of_a_run_is_a_configuration(standbys, protocol):
    chosen = config(arguments([*NEEDED, *Variant(standbys, protocol).worker_options]))
    assert (chosen.num_standby_replicas, chosen.group_protocol) == (standbys, protocol)
