import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamfleet.worker.http_messages import Answer, HeadParser, RefusedRequestError, encode, parse_head

HOST = b"\r\nHost: worker"


def test_a_request_is_taken_apart():
    head = b"POST /control/drain?now=1&a=%2F HTTP/1.1\r\nHost: worker\r\nContent-LENGTH: 12\r\nX-Odd:  a:b \t"
    request, length = parse_head(head)
    assert (request.method, request.path, request.query) == ("POST", "/control/drain", "now=1&a=%2F")
    assert request.headers == {"host": "worker", "content-length": "12", "x-odd": "a:b"}
    assert length == 12
    assert request.keep_alive


@pytest.mark.parametrize(
    ("head", "kept"),
    [
        (b"GET / HTTP/1.1\r\nHost: w", True),
        (b"GET / HTTP/1.1\r\nHost: w\r\nConnection: Close", False),
        (b"GET / HTTP/1.0", False),
        (b"GET / HTTP/1.0\r\nConnection: keep-alive", True),
    ],
)
def test_connections_are_kept_as_the_version_says(head, kept):
    assert parse_head(head)[0].keep_alive is kept


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"", 400),
        (b"GET /" + HOST, 400),
        (b"GET  / HTTP/1.1" + HOST, 400),
        (b"G T / HTTP/1.1" + HOST, 400),
        (b"GET http://other/ HTTP/1.1" + HOST, 400),
        (b"GET //\x01 HTTP/1.1" + HOST, 400),
        (b"GET /\xff HTTP/1.1" + HOST, 400),
        (b"GET /#part HTTP/1.1" + HOST, 400),
        (b"GET / HTTP/1.1", 400),
        (b"GET / HTTP/1.1" + HOST + b"\r\nHost: other", 400),
        (b"GET / HTTP/1.1" + HOST + b"\r\n folded", 400),
        (b"GET / HTTP/1.1" + HOST + b"\r\nSpace : x", 400),
        (b"GET / HTTP/1.1" + HOST + b"\r\nA: b\nC: d", 400),
        (b"POST / HTTP/1.1" + HOST + b"\r\nContent-Length: -1", 400),
        (b"POST / HTTP/1.1" + HOST + b"\r\nContent-Length: 1\r\nContent-Length: 2", 400),
        (b"POST / HTTP/1.1" + HOST + b"\r\nContent-Length: 65537", 413),
        (b"POST / HTTP/1.1" + HOST + b"\r\nTransfer-Encoding: chunked", 501),
        (b"PUT / HTTP/1.1" + HOST, 501),
        (b"GET / HTTP/2", 505),
    ],
)
def test_what_is_no_plain_request_is_refused(head, status):
    with pytest.raises(RefusedRequestError) as refused:
        parse_head(head)
    assert refused.value.status == status


@given(st.binary(max_size=200))
def test_no_bytes_make_the_parser_fail_in_another_way(data):
    for head in (data, b"GET /" + data + b" HTTP/1.1" + HOST, b"GET / HTTP/1.1" + HOST + b"\r\n" + data):
        with contextlib.suppress(RefusedRequestError):
            parse_head(head)


HEADS = [
    f"{method} /{path} HTTP/{version}\r\n{headers}".encode()
    for method in ("GET", "POST")
    for path in ("a", "b?c=d")
    for version in ("1.0", "1.1")
    for headers in ("", "Host: w", "Host: w\r\nConnection: close", "Host: w\r\nContent-Length: 3", "Host w")
]


@given(st.lists(st.sampled_from(HEADS), max_size=8))
def test_a_request_means_the_same_whatever_came_before_it_on_its_connection(heads):
    def told(parse, head):
        try:
            return parse(head)
        except RefusedRequestError as refused:
            return refused.status, refused.why

    connection = HeadParser()
    assert [told(connection.parse, head) for head in heads] == [told(parse_head, head) for head in heads]


def test_an_answer_tells_its_length_also_without_its_body():
    answer = Answer(200, "text/plain", b"hello", {"Retry-After": "1"})
    whole = encode(answer, 0, keep_alive=True)
    assert whole.startswith(b"HTTP/1.1 200 OK\r\n")
    assert whole.endswith(b"Retry-After: 1\r\n\r\nhello")
    headless = encode(answer, 0, keep_alive=False, with_body=False)
    assert b"Content-Length: 5\r\n" in headless
    assert headless.endswith(b"Connection: close\r\n\r\n")
