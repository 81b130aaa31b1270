import socket
import struct
import threading

import pytest

from streamfleet_jobs.kafka.raw_log import RawConnection, RawLogUnavailableError


def batch(base, last, count=None, *, bits=0, base_time=1000, max_time=2000, body=20):
    """A batch's header, as a broker stores it, and some bytes for its records."""
    count = last - base + 1 if count is None else count
    rest = struct.pack(">hiqqqhii", bits, last - base, base_time, max_time, -1, -1, -1, count) + bytes(body)
    after_length = struct.pack(">ibI", 0, 2, 0) + rest
    return struct.pack(">qi", base, len(after_length)) + after_length


def answer(data, high_watermark, error=0):
    body = struct.pack(">ii", 0, 1) + struct.pack(">h", 1) + b"t" + struct.pack(">i", 1)
    body += struct.pack(">ihqqi", 0, error, high_watermark, high_watermark, -1) + struct.pack(">i", len(data)) + data
    return body


class Broker:
    """Answers the n-th Fetch with the n-th answer (the last one for ever), and notes which offset was asked for."""

    def __init__(self, *answers):
        self._answers = list(answers)
        self.asked = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.place = self._server.getsockname()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        connection, _ = self._server.accept()
        with connection, connection.makefile("rb") as requests:
            while head := requests.read(4):
                request = requests.read(struct.unpack(">i", head)[0])
                self.asked.append(struct.unpack_from(">q", request, len(request) - 12)[0])
                body = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
                if body is None:
                    return
                connection.sendall(struct.pack(">ii", len(body) + 4, len(self.asked)) + body)

    def close(self):
        self._server.close()


@pytest.fixture
def scan():
    brokers = []

    def run(*answers, start=0, end=100):
        brokers.append(Broker(*answers))
        with RawConnection(*brokers[-1].place) as connection:
            return connection.scan("t", 0, start, end), brokers[-1].asked

    yield run
    for broker in brokers:
        broker.close()


def test_headers_tell_offsets_counts_and_what_kind_of_batch_it_is(scan):
    data = batch(0, 9, 4) + batch(10, 10, bits=0x30) + batch(11, 99, bits=0x50, base_time=77)
    log, _ = scan(answer(data, 100))
    cleaned, marker, kept = log.batches
    assert (cleaned.base, cleaned.last, cleaned.count, cleaned.has_holes) == (0, 9, 4, True)
    assert (marker.is_control, marker.is_transactional, marker.has_holes) == (True, True, False)
    assert (kept.is_control, kept.delete_horizon_ms, kept.max_timestamp) == (False, 77, 2000)
    assert cleaned.delete_horizon_ms is None and cleaned.size == 61 + 20


def test_an_answer_that_ends_with_a_whole_batch_before_the_end_shows_a_border_of_segments(scan):
    cut = batch(40, 99)[:50]
    log, asked = scan(answer(batch(0, 19), 100), answer(batch(20, 39) + cut, 100), answer(batch(40, 99), 100))
    assert asked == [0, 20, 40]
    assert log.segments == (0, 20) and log.active_base == 20
    assert [b.base for b in log.batches] == [0, 20, 40]


def test_what_lies_after_the_pinned_end_is_left_out(scan):
    log, _ = scan(answer(batch(0, 49) + batch(50, 99), 100), end=50)
    assert [b.base for b in log.batches] == [0]


def test_a_batch_that_begins_before_the_start_counts_from_there(scan):
    log, _ = scan(answer(batch(0, 9) + batch(10, 99), 100), start=5)
    assert [b.base for b in log.batches] == [0, 10] and log.segments == (5,)


def test_a_log_that_ends_early_is_no_endless_loop(scan):
    assert scan(answer(b"", 0))[0].batches == ()
    with pytest.raises(RawLogUnavailableError, match="gives no batch at 0"):
        scan(answer(b"", 100))


@pytest.mark.parametrize(("reply", "why"), [(answer(b"", 0, error=6), "error 6"), (None, "ended the connection")])
def test_why_it_cannot_be_read_is_said(scan, reply, why):
    with pytest.raises(RawLogUnavailableError, match=why):
        scan(reply)


def test_a_broker_that_is_not_there_is_unavailable():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        place = closed.getsockname()
    with pytest.raises(RawLogUnavailableError, match="not reachable"):
        RawConnection(*place)
