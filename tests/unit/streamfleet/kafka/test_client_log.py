"""A client whose broker is away repeats itself; its log does not."""

import logging

from streamfleet.kafka.client_log import REPEAT_AFTER_MS, SayOnce, client_logger


class Clock:
    now = 1_000_000

    def now_ms(self):
        return self.now

    def pause_ms(self, milliseconds):
        self.now += milliseconds


def line(text):
    return logging.LogRecord("x", logging.ERROR, "", 0, text, None, None)


def test_a_line_that_differs_only_in_numbers_is_said_once_per_half_minute():
    clock = Clock()
    once = SayOnce(clock)
    assert once.filter(line("connect to 127.0.0.1:9092 failed (after 0ms)"))
    assert not once.filter(line("connect to 127.0.0.1:9093 failed (after 17ms)"))
    clock.pause_ms(REPEAT_AFTER_MS - 1)
    assert not once.filter(line("connect to 127.0.0.1:9092 failed (after 1ms)"))
    clock.pause_ms(1)
    assert once.filter(line("connect to 127.0.0.1:9092 failed (after 1ms)"))


def test_other_lines_pass():
    once = SayOnce(Clock())
    assert once.filter(line("one"))
    assert once.filter(line("other"))


def test_what_it_remembers_is_bounded():
    once = SayOnce(Clock())
    for number in range(5000):
        once.filter(line("x" * (number + 1)))
    assert len(once._last_ms) <= 1001


def test_the_clients_logger_has_the_filter():
    assert any(isinstance(each, SayOnce) for each in client_logger.filters)
