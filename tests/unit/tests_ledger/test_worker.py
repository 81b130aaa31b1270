"""What a worker process of the ledger is told on its command line."""

from tests.ledger.worker import arguments, config

NEEDED = ["--bootstrap", "127.0.0.1:1", "--app", "ledger", "--state-dir", "state", "--guarantee", "at_least_once"]


def test_the_worker_runs_without_caches_and_commits_often():
    chosen = config(arguments(NEEDED))
    assert (chosen.statestore_cache_max_bytes, chosen.windowed_emit_interval_ms, chosen.commit_interval_ms) == (
        0,
        0,
        100,
    )


def test_any_setting_can_be_given_by_its_name():
    chosen = config(arguments([*NEEDED, "--setting", "num.standby.replicas=1", "--setting", "commit.interval.ms=50"]))
    assert (chosen.num_standby_replicas, chosen.commit_interval_ms) == (1, 50)
