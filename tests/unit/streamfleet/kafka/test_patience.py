"""Time that goes on while the machine is suspended."""

import time

from streamfleet.kafka import patience
from streamfleet.kafka.membership_mailbox import Mailbox
from streamfleet.kafka.patience import MonotonicClock


def test_a_member_whose_machine_was_suspended_for_longer_than_its_session_does_not_take_itself_for_one(monkeypatch):
    asleep_ns = 0
    awake_ns = time.monotonic_ns()
    monkeypatch.setattr(patience.time, "CLOCK_BOOTTIME", 7, raising=False)
    monkeypatch.setattr(patience.time, "clock_gettime_ns", lambda clock: {7: awake_ns + asleep_ns}[clock])
    monkeypatch.setattr(patience.time, "monotonic_ns", lambda: awake_ns)  # Linux's, which stands still
    monkeypatch.setattr(patience, "elapsed_ns", patience.uninterrupted_ns())
    clock = MonotonicClock()
    mailbox = Mailbox(clock, lambda: None)
    mailbox.confirm(clock.now_ms() + 45_000)
    assert mailbox.is_surely_member
    asleep_ns = 46_000_000_000
    assert not mailbox.is_surely_member


def test_without_such_a_clock_it_is_the_plain_one(monkeypatch):
    monkeypatch.delattr(patience.time, "CLOCK_BOOTTIME", raising=False)
    monkeypatch.setattr(patience.time, "monotonic_ns", lambda: 5_999_999)
    monkeypatch.setattr(patience, "elapsed_ns", patience.uninterrupted_ns())
    assert MonotonicClock().now_ms() == 5
