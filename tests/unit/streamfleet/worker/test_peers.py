"""What a worker refuses to call, and which answers it does not take."""

import socket
import threading
import time

import pytest

from streamfleet.worker import peers as module
from streamfleet.worker.peers import PeerError, Peers


@pytest.fixture
def peers():
    peers = Peers("app", timeout_seconds=1.0)
    yield peers
    peers.close()


@pytest.fixture
def serve():
    """serve(*answers): a server that gives each connection's requests those bytes, one after the other; its endpoint."""
    listeners = []

    def start(*answers, then=lambda connection: None):
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def run():
            try:
                while True:
                    connection, _ = listener.accept()
                    with connection:
                        for answer in answers:
                            if not connection.recv(65536):
                                break
                            connection.sendall(answer)
                        then(connection)
            except OSError:
                return

        threading.Thread(target=run, daemon=True).start()
        return f"127.0.0.1:{listener.getsockname()[1]}"

    yield start
    for listener in listeners:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def answer(body=b"{}", status="200 OK", application="app", **headers):
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", f"Streamfleet-Application: {application}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def test_an_answer_is_passed_on_and_the_connection_kept(peers, serve):
    endpoint = serve(answer(b"1"), answer(b"2", Retry_After="3"))
    assert peers.ask(endpoint, "/query/x").body == b"1"
    second = peers.ask(endpoint, "/query/x")
    assert (second.body, second.headers) == (b"2", {"Retry-After": "3"})


def test_a_kept_connection_that_was_closed_meanwhile_is_replaced(peers, serve):
    endpoint = serve(answer(b"1"))
    for _ in range(3):
        assert peers.ask(endpoint, "/query/x").body == b"1"


@pytest.mark.parametrize(
    "endpoint",
    [
        "127.0.0.1:22",
        "127.0.0.1:99999",
        "127.0.0.1",
        "127.0.0.1:http",
        "169.254.169.254:8080",
        "[fe80::1]:8080",
        "[::ffff:169.254.169.254]:8080",
        "0.0.0.0:8080",
        "224.0.0.1:8080",
        "user@127.0.0.1:8080",
        "http://127.0.0.1:8080",
        "nowhere.invalid:8080",
    ],
)
def test_what_is_no_address_of_a_worker_is_not_called(peers, endpoint, monkeypatch):
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("called"))
    with pytest.raises(PeerError):
        peers.ask(endpoint, "/query/x")


@pytest.mark.parametrize(
    "sent",
    [
        answer(status="302 Found", Location="http://127.0.0.1:1/"),
        answer(application="other"),
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\nStreamfleet-Application: app\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nStreamfleet-Application: app\r\n\r\n{}",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"x" * 20_000,
        b"",
    ],
)
def test_an_answer_that_cannot_be_a_workers_is_not_taken(peers, serve, sent):
    with pytest.raises(PeerError):
        peers.ask(serve(sent), "/query/x")


def test_two_seconds_are_all_there_is_however_slowly_it_comes(serve):
    def drip(connection):
        for _ in range(100):
            time.sleep(0.05)
            connection.sendall(b"x")

    peers = Peers("app", timeout_seconds=0.3)
    endpoint = serve(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", then=drip)
    began = time.monotonic()
    with pytest.raises(PeerError, match="does not answer"):
        peers.ask(endpoint, "/query/x")
    assert time.monotonic() - began < 3


def test_the_address_that_was_looked_at_is_the_one_that_is_called(peers, serve, monkeypatch):
    endpoint = serve(answer(b"1"))
    port = int(endpoint.rpartition(":")[2])
    lookups = []

    def changing(host, *args, **options):
        lookups.append(host)
        address = "127.0.0.1" if len(lookups) == 1 else "169.254.169.254"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(module.socket, "getaddrinfo", changing)
    assert peers.ask(f"worker.example:{port}", "/query/x").body == b"1"
    assert lookups == ["worker.example"]


def test_a_name_that_is_looked_up_for_ever_takes_no_longer_than_an_answer(monkeypatch):
    peers = Peers("app", timeout_seconds=0.2)
    answered, lookups = threading.Event(), []

    def hanging(host, *args, **options):
        lookups.append(host)
        answered.wait(10)
        raise socket.gaierror("no such name")

    monkeypatch.setattr(module.socket, "getaddrinfo", hanging)
    began = time.monotonic()
    for _ in range(3):
        with pytest.raises(PeerError, match="does not answer"):
            peers.ask("worker.example:8080", "/query/x")
    answered.set()
    assert time.monotonic() - began < 3
    assert lookups == ["worker.example"], "one thread waits for a name, however often it is asked for"


def test_a_name_that_cannot_be_one_is_refused(peers):
    with pytest.raises(PeerError, match="no name of a host"):
        peers.ask(f"{'x' * 70}.example:8080", "/query/x")


def test_connections_to_a_worker_that_is_not_asked_any_more_are_closed(peers, serve, monkeypatch):
    ended = threading.Event()

    def wait_for_end(connection):
        if connection.recv(1) == b"":
            ended.set()

    gone, there = serve(answer(b"1"), then=wait_for_end), serve(answer(b"2"), answer(b"3"))
    for endpoint in (gone, there):
        peers.ask(endpoint, "/query/x")
    later = time.monotonic() + module.IDLE_SECONDS + 1
    monkeypatch.setattr(module.time, "monotonic", lambda: later)
    peers.ask(there, "/query/x")
    assert ended.wait(5)
