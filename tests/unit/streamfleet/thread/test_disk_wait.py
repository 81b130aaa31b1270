"""When tasks that wait for room on the disk look again."""

from pathlib import Path

import pytest
import structlog

from streamfleet.errors import DiskFullError
from streamfleet.testing.manual_clock import ManualClock
from streamfleet.thread.disk_wait import FIRST_PAUSE_MS, LONGEST_PAUSE_MS, DiskWait

FULL = DiskFullError("cannot write the database at app/aa_0", directory=Path("/state/app/aa_0"), hint="free some")


class Disk:
    def __init__(self):
        self.is_full, self.asked = True, 0

    def has_room(self):
        self.asked += 1
        return not self.is_full


@pytest.fixture
def disk():
    return Disk()


@pytest.fixture
def clock():
    return ManualClock(1_000_000)


@pytest.fixture
def wait(disk, clock):
    return DiskWait("app-0", disk.has_room, clock)


def test_nothing_is_asked_while_nothing_waits(wait, disk):
    assert wait.is_over() and wait.reason is None
    assert disk.asked == 0


def test_the_disk_is_asked_less_and_less_often_and_the_reason_is_said_once(wait, disk, clock):
    with structlog.testing.capture_logs() as logged:
        wait.begin(FULL)
        asked_at = []
        for second in range(120):
            before = disk.asked
            assert not wait.is_over()
            if disk.asked > before:
                asked_at.append(second)
            clock.advance(1000)
    assert asked_at == [1, 3, 7, 15, 31, 61, 91]
    assert [line["event"] for line in logged] == ["disk is full, tasks wait for room"]
    assert wait.reason == "cannot write the database at app/aa_0"


def test_with_room_it_is_over_at_once_and_for_good(wait, disk, clock):
    wait.begin(FULL)
    disk.is_full = False
    assert not wait.is_over()
    clock.advance(FIRST_PAUSE_MS)
    assert wait.is_over() and wait.is_over() and wait.reason is None
    assert disk.asked == 1


def test_a_disk_that_fills_up_again_at_once_is_left_alone_for_longer(wait, disk, clock):
    disk.is_full = False
    for pause_ms in (FIRST_PAUSE_MS, 2 * FIRST_PAUSE_MS, 4 * FIRST_PAUSE_MS):
        wait.begin(FULL)
        clock.advance(pause_ms - 1)
        assert not wait.is_over()
        clock.advance(1)
        assert wait.is_over()
    clock.advance(LONGEST_PAUSE_MS)
    wait.begin(FULL)
    clock.advance(FIRST_PAUSE_MS)
    assert wait.is_over()


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_that_is_set_does_not_change_the_wait(wait, disk, clock, hours):
    wait.begin(FULL)
    disk.is_full = False
    clock.set_wall_clock(clock.now_ms() + hours * 3_600_000)
    clock.advance(FIRST_PAUSE_MS - 1)
    assert not wait.is_over()
    clock.advance(1)
    assert wait.is_over()
