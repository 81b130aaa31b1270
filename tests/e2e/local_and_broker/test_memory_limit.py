"""Row F13: a process runs out of memory. Like kill -9: who comes next goes on at the last commit; nothing is lost or repeated."""

import pytest
from tests.integration.faults.conftest import COLOURS, KEYS, CountingApp
from tests.integration.faults.limited_process import LimitedProcess, open_directory
from tests.integration.streamfleet.kafka_streams.conftest import Bench

__all__ = ["open_directory"]  # a fixture

ALL = len(KEYS) * len(COLOURS)


@pytest.fixture
def app(broker, tmp_path):
    return CountingApp(Bench(broker, tmp_path))


def test_F13_a_process_without_memory_ends_and_the_next_one_goes_on_at_its_last_commit(app, open_directory):
    process = LimitedProcess(app, open_directory, at="after_store_write", more_memory_bytes=2**20)
    app.write(ALL)
    app.wait_until_counted()  # from now on there is a limit
    long_keys = [(f"{n}-" + "k" * 9000, COLOURS[n % len(COLOURS)]) for n in range(4000)]
    app.bench.write(app.source, long_keys)
    app.expect(long_keys)
    code = process.end_code(timeout_seconds=60)
    assert code is not None, "it did not run out of memory"
    assert process.said("MemoryError") or code < 0, f"it ended with {code}, for another reason"
    app.write(ALL)
    with app.running():
        app.wait_until_counted(timeout_seconds=90)
    app.assert_state_is_its_changelog("keys")
