from __future__ import annotations

from datetime import timedelta

import pytest

from streamfleet.testing import ManualClock


def test_clock_stands_still_until_it_is_advanced():
    clock = ManualClock(100)
    assert clock.now_ms() == clock.now_ms() == 100
    clock.advance(5)
    clock.advance(timedelta(seconds=1))
    assert clock.now_ms() == 1105


def test_clock_cannot_go_back():
    with pytest.raises(ValueError, match="must not be negative"):
        ManualClock().advance(-1)


def test_both_readings_move_together_until_the_wall_clock_is_set():
    clock = ManualClock(100)
    clock.advance(5)
    assert clock.monotonic_ms() == clock.now_ms() == 105
    clock.set_wall_clock(20)
    clock.advance(5)
    assert (clock.monotonic_ms(), clock.now_ms()) == (110, 25)
