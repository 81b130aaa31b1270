import json

import pytest

from streamfleet.worker.http_messages import Request, json_answer
from streamfleet.worker.http_routes import Routes


@pytest.fixture
def routes():
    routes = Routes()
    routes.get("/page", lambda request: json_answer(200, {"query": request.query}))
    routes.get("/below/", lambda request: json_answer(200, {"path": request.path}))
    routes.post("/act", lambda content: json_answer(202, {"got": content}))
    return routes


def ask(routes, method, path, body=b"", **headers):
    answer = routes.answer(Request(method, path, "a=1", {k.replace("_", "-"): v for k, v in headers.items()}, body))
    return answer.status, json.loads(answer.body)


def test_a_path_that_ends_in_a_slash_stands_for_all_below(routes):
    assert ask(routes, "GET", "/below/one/two") == (200, {"path": "/below/one/two"})
    assert ask(routes, "GET", "/below")[0] == 404


def test_an_action_gets_the_json_of_the_body(routes):
    assert ask(routes, "POST", "/act", b'{"n": 1}', content_type="application/json; charset=utf-8") == (
        202,
        {"got": {"n": 1}},
    )
    assert ask(routes, "POST", "/act", content_type="application/json") == (202, {"got": None})


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{", {"content_type": "application/json"}, 400),
        (b"{}", {"content_type": "text/plain"}, 415),
        (b"{}", {}, 415),
        (b"{}", {"content_type": "application/json", "origin": "http://elsewhere"}, 403),
    ],
)
def test_an_action_is_not_for_browsers_nor_for_other_bodies(routes, body, headers, status):
    assert ask(routes, "POST", "/act", body, **headers)[0] == status


def test_another_method_is_told_which_there_are(routes):
    answer = routes.answer(Request("POST", "/page", "", {}))
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")
    answer = routes.answer(Request("GET", "/act", "", {}))
    assert (answer.status, answer.headers["Allow"]) == (405, "POST")


def test_a_page_that_fails_is_a_500(routes):
    routes.get("/broken", lambda request: 1 / 0)
    assert ask(routes, "GET", "/broken")[0] == 500
