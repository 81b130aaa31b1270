"""Row F49: the disk takes no more. The app ends with one sentence, and what was committed comes back from the changelogs."""

import pytest
from tests.integration.faults.conftest import COLOURS, KEYS, CountingApp
from tests.integration.faults.limited_process import LimitedProcess, assert_said, open_directory
from tests.integration.streamfleet.kafka_streams.conftest import Bench

__all__ = ["open_directory"]  # a fixture

ALL = len(KEYS) * len(COLOURS)


@pytest.fixture
def app(broker, tmp_path):
    return CountingApp(Bench(broker, tmp_path))


def test_F49_a_full_disk_ends_the_app_and_what_was_committed_is_restored(app, open_directory):
    """With files that cannot grow: the state is flushed, in vain, when the write buffers are full."""
    process = LimitedProcess(app, open_directory, at="after_store_write", file_bytes=200_000)
    for round_ in range(150):
        if process.wait(0.2):
            break
        long_keys = [(f"{round_}-{n}-" + "k" * 9000, COLOURS[n % len(COLOURS)]) for n in range(80)]
        app.bench.write(app.source, long_keys)
        app.expect(long_keys)
    assert_said(process.outcome(), "StateStoreError", "File too large", "free some disk space", f"{app.bench.app}/")
    app.write(ALL)
    app.run_until_counted()
