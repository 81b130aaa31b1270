import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from streamfleet_jobs.audit import doors
from streamfleet_jobs.errors import UnavailableError

DIGEST = {"offset": 7, "timestamps": True, "oldest_ms": None, "active": True, "buckets": {"3": [1, "ff", "ff"]}}


@pytest.fixture
def worker():
    """A worker's door that gives prepared answers, one after the other, and then the last one again."""
    servers = []

    def start(*answers):
        queue, asked = list(answers), []

        class Door(BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(self.path)
                status, body = queue.pop(0) if len(queue) > 1 else queue[0]
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        server = HTTPServer(("127.0.0.1", 0), Door)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}", asked

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def ok(**changes):
    return 200, json.dumps(DIGEST | changes).encode()


def test_the_worker_with_the_active_task_answers_for_the_partition(worker):
    standby, _ = worker(ok(active=False, offset=3))
    owner, asked = worker(ok())
    found = doors.ask([standby, owner], "my store", 2, [3, 4])
    assert (found.offset, found.digest) == (7, {3: (1, 255, 255)})
    assert asked == ["/digest/my%20store?partition=2&buckets=3%2C4"]


def test_a_busy_worker_is_asked_again(worker, monkeypatch):
    monkeypatch.setattr(doors, "_BUSY_SECONDS", 0.01)
    door, asked = worker((429, b"{}"), (429, b"{}"), ok())
    assert doors.ask([door], "s", 0).active
    assert len(asked) == 3


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (ok(active=False), "not the owner"),
        ((503, b'{"error": "task 0_0 is restoring"}'), "task 0_0 is restoring"),
        ((500, b"<html>"), "status 500"),
        ((200, b'{"offset": "much"}'), "offset"),
    ],
    ids=["standby", "restoring", "no reason", "not a digest"],
)
def test_why_nobody_answers_is_said(worker, answer, why):
    door, _ = worker(answer)
    with pytest.raises(UnavailableError, match=why):
        doors.ask([door], "s", 0)


def test_a_worker_that_ends_in_the_middle_of_its_answer_is_one_that_gives_none(worker):
    whole = ok()[1]

    class Cut(bytes):
        def __len__(self):
            return len(whole) + 100

    door, _ = worker((200, Cut(whole)))
    server_closes = pytest.raises(UnavailableError, match="no worker gives a digest")
    with server_closes:
        doors.ask([door], "s", 0)


def test_without_doors_that_is_what_is_said():
    with pytest.raises(UnavailableError, match="no doors are known"):
        doors.ask([], "s", 0)


def test_rows_come_with_signed_hashes():
    listed = doors.DoorDigest(1, False, None, True, {}, [("YQ==", "ffffffffffffffff")])
    assert listed.hashed_rows == {b"a": -1}
