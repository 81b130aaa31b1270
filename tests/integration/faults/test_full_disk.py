"""Row F49: the disk takes no more. The tasks on it wait, the others go on, and with room again nothing was lost.

A limit on the size of files stands for the disk: it needs no rights, and a database meets it where it meets a full disk, when it
writes its buffers to a file.
"""

import itertools

from tests.integration.faults.conftest import COLOURS, KEYS, offsets_of, wait_for
from tests.integration.faults.limited_process import LimitedProcess, open_directory

from streamfleet.kafka_streams import ClientState

__all__ = ["open_directory"]  # a fixture

ALL = len(KEYS) * len(COLOURS)
FULL, ROOM = "disk is full, tasks wait for room", "disk has room again"


def fill(app, process):
    """Write keys that take room until the disk is full."""
    numbers = itertools.count()

    def is_full():
        long_keys = [(f"{next(numbers)}-" + "k" * 9000, COLOURS[n % len(COLOURS)]) for n in range(80)]
        app.bench.write(app.source, long_keys)
        app.expect(long_keys)
        assert not process.wait(0.2), process.outcome()
        return process.said(FULL)

    wait_for(is_full, timeout_seconds=60)


def committed(app):
    return {place: offset for place, (_, offset) in offsets_of(app.bench, app.inputs).items()}


def lags(streams):
    return [place.lag_records for task in streams.threads()[0].tasks for place in task.inputs]


def test_F49_tasks_on_a_full_disk_wait_and_go_on_when_it_has_room(app, open_directory):
    process = LimitedProcess(app, open_directory, at="after_store_write", file_bytes=200_000)
    fill(app, process)
    before = committed(app)
    app.write(ALL)
    assert not process.wait(2), process.outcome()
    assert committed(app) == before, "offsets were committed for rows that nobody wrote"
    process.lift_limit()
    app.wait_until_counted(timeout_seconds=60)
    assert (process.said(FULL), process.said(ROOM)) == (1, 1)
    assert f"{app.bench.app}/" in process.line(FULL) and "File too large" in process.line(FULL)
    outcome = process.stop()
    assert outcome["stopped"] and not outcome["message"], outcome
    app.assert_state_is_its_changelog("keys")
    app.assert_state_is_its_changelog("colours")


def test_F49_tasks_whose_databases_cannot_be_opened_on_a_full_disk_wait_and_are_opened_when_it_has_room(
    app, open_directory
):
    app.write(ALL)
    process = LimitedProcess(app, open_directory, at="after_init_txn", file_bytes=1000)
    wait_for(lambda: process.said(FULL) or process.wait(0))
    assert not process.wait(2), process.outcome()
    assert set(committed(app).values()) == {0}, "offsets were committed by tasks that have no rows"
    assert f"{app.bench.app}/" in process.line(FULL) and "File too large" in process.line(FULL)
    assert not process.said("task running")
    process.lift_limit()
    app.wait_until_counted(timeout_seconds=60)
    assert (process.said(FULL), process.said(ROOM)) == (1, 1)
    outcome = process.stop()
    assert outcome["stopped"] and not outcome["message"], outcome
    app.assert_state_is_its_changelog("keys")


def test_F49_a_process_with_room_is_not_disturbed_by_one_without(app, open_directory):
    process = LimitedProcess(app, open_directory, at="after_store_write", file_bytes=200_000)
    with app.running(worker="other") as other:
        fill(app, process)
        app.write(ALL)
        wait_for(lambda: lags(other) and set(lags(other)) == {0})
        assert other.state is ClientState.RUNNING
        process.lift_limit()
        app.wait_until_counted(timeout_seconds=60)
        outcome = process.stop()
    assert outcome["stopped"] and not outcome["message"], outcome
