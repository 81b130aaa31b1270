"""Sockets on loopback, with clients that behave, and that do not."""

import http.client
import socket
import threading
import time

import pytest

from streamfleet.worker import http_server
from streamfleet.worker.http_messages import Answer
from streamfleet.worker.http_server import Address, HttpServer

HEAD = b"GET /x HTTP/1.1\r\nHost: w\r\n\r\n"


def echo(request):
    return Answer(200, "text/plain", f"{request.method} {request.path} ".encode() + request.body)


@pytest.fixture
def serve():
    servers = []

    def start(answer=echo, **options):
        server = HttpServer(Address("127.0.0.1", 0), answer, **options)
        address = server.open()
        servers.append(server)
        return address

    yield start
    for server in servers:
        server.close()


def read_all(connection):
    data = b""
    while chunk := connection.recv(65536):
        data += chunk
    return data


def connect(address):
    return socket.create_connection(address, timeout=10)


def test_many_requests_on_one_connection(serve):
    connection = http.client.HTTPConnection(*serve(), timeout=10)
    for n in range(5):
        connection.request("POST", f"/{n}", body=b"b" * n)
        assert connection.getresponse().read() == f"POST /{n} ".encode() + b"b" * n
    connection.close()


def test_requests_that_come_together_or_in_pieces_are_answered_in_order(serve):
    with connect(serve()) as connection:
        connection.sendall(HEAD + b"POST /y HTTP/1.1\r\nHost: w\r\nContent-Le")
        connection.sendall(b"ngth: 3\r\n\r\nab")
        connection.sendall(b"cGET /z HTTP/1.1\r\nHost: w\r\nConnection: close\r\n\r\n")
        answers = read_all(connection)
    bodies = [part for part in (b"GET /x ", b"POST /y abc", b"GET /z ") if part in answers]
    assert len(bodies) == 3
    assert answers.index(bodies[0]) < answers.index(bodies[1]) < answers.index(bodies[2])


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: w\r\nLong: " + b"x" * 17_000 + b"\r\n\r\n", b"431"),
        (b"POST / HTTP/1.1\r\nHost: w\r\nContent-Length: 99999999\r\n\r\n", b"413"),
    ],
)
def test_a_bad_request_is_refused_and_the_connection_ends(serve, sent, status):
    with connect(serve()) as connection:
        connection.sendall(sent)
        assert connection.recv(65536).startswith(b"HTTP/1.1 " + status)


def test_a_request_that_never_ends_does_not_keep_its_thread(serve, monkeypatch):
    monkeypatch.setattr(http_server, "REQUEST_SECONDS", 0.3)
    with connect(serve()) as connection:
        connection.sendall(HEAD[:10])
        assert read_all(connection).startswith(b"HTTP/1.1 408")


def test_an_idle_connection_is_closed(serve, monkeypatch):
    monkeypatch.setattr(http_server, "IDLE_SECONDS", 0.2)
    with connect(serve()) as connection:
        assert connection.recv(1) == b""


def test_a_reader_that_does_not_read_does_not_keep_its_thread(serve, monkeypatch):
    monkeypatch.setattr(http_server, "REQUEST_SECONDS", 1.0)
    ended = threading.Event()
    real = HttpServer._serve

    def serve_and_tell(server, connection):
        real(server, connection)
        ended.set()

    monkeypatch.setattr(HttpServer, "_serve", serve_and_tell)
    address = serve(lambda request: Answer(200, "text/plain", b"x" * 50_000_000))
    with connect(address) as connection:
        connection.sendall(HEAD)
        assert ended.wait(20)


def test_a_client_that_goes_away_harms_nobody(serve):
    address = serve(lambda request: Answer(200, "text/plain", b"x" * 5_000_000))
    for _ in range(3):
        with connect(address) as connection:
            connection.sendall(HEAD)
    with connect(address) as connection:
        connection.sendall(HEAD)
        assert connection.recv(12) == b"HTTP/1.1 200"


def test_connections_over_the_limit_are_told_so_and_room_is_made_again(serve):
    address = serve(max_connections=2)
    first, second = connect(address), connect(address)
    for connection in (first, second):
        connection.sendall(HEAD)
        assert connection.recv(12) == b"HTTP/1.1 200"
    with connect(address) as third:
        assert third.recv(65536).startswith(b"HTTP/1.1 503")
    first.close()
    deadline = time.monotonic() + 10
    while True:
        with connect(address) as again:
            again.sendall(HEAD)
            if again.recv(12) == b"HTTP/1.1 200":
                break
        assert time.monotonic() < deadline
    second.close()


def test_a_door_that_gets_no_thread_refuses_that_connection_and_stays_open(serve, monkeypatch):
    address, start = serve(), threading.Thread.start

    def refuse(thread):
        monkeypatch.setattr(threading.Thread, "start", start)
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with connect(address) as connection:
        assert b"503" in read_all(connection)
    with connect(address) as connection:
        connection.sendall(HEAD)
        assert b"GET /x" in connection.recv(65536)


def test_a_slow_answer_holds_up_no_other(serve):
    release = threading.Event()

    def answer(request):
        if request.path == "/slow":
            release.wait(10)
        return Answer(200, "text/plain", request.path.encode())

    address = serve(answer)
    with connect(address) as slow, connect(address) as quick:
        slow.sendall(HEAD.replace(b"/x", b"/slow"))
        quick.sendall(HEAD)
        assert quick.recv(12) == b"HTTP/1.1 200"
        release.set()
        assert slow.recv(12) == b"HTTP/1.1 200"


def test_closing_ends_the_connections(serve):
    server = HttpServer(Address("127.0.0.1", 0), echo)
    with connect(server.open()) as connection:
        connection.sendall(HEAD)
        assert connection.recv(12) == b"HTTP/1.1 200"
        server.close()
        assert read_all(connection) is not None
