import base64
import json

import pytest

from streamfleet.errors import StoreUnavailableError
from streamfleet.worker.digest_pages import DigestPages
from streamfleet.worker.http_messages import Request
from streamfleet_jobs.columns.row_digest import bucket_of, row_hash


def get(pages, target):
    path, _, query = target.partition("?")
    answer = pages.answer(Request("GET", path, query, {}, b""))
    return answer.status, json.loads(answer.body)


@pytest.fixture
def counting(new_app):
    app = new_app()
    app.open(app.place("counts").task(0))
    app.work("counts", 0, "words", "a", "x", 5)
    app.commit(app.place("counts").task(0))
    yield app
    app.close_all()


@pytest.fixture
def pages(counting):
    return DigestPages(lambda: counting.queries)


def test_a_digest_names_its_moment_and_its_sums(pages):
    weight = f"{row_hash(b'a', (1).to_bytes(8, 'big'), 5) & (2**64 - 1):016x}"
    assert get(pages, "/digest/counts?partition=0") == (
        200,
        {
            "store": "counts",
            "partition": 0,
            "changelog": "app-counts-changelog",
            "offset": 0,
            "timestamps": True,
            "oldest_ms": None,
            "active": True,
            "buckets": {str(bucket_of(b"a")): [1, weight, weight]},
        },
    )
    _, rows = get(pages, f"/digest/counts?partition=0&buckets=1,{bucket_of(b'a')}")
    assert rows["rows"] == [[base64.b64encode(b"a").decode(), weight]] and rows["offset"] == 0


def test_F50_a_damaged_store_is_503(counting, pages):
    task_id = counting.place("counts").task(0)
    for n in range(2000):
        counting.work("counts", 0, "words", f"word-{n:040}", "x", n)
    counting.commit(task_id)
    counting.damage(task_id)
    status, body = get(pages, "/digest/counts?partition=0")
    assert status == 503 and "Corruption" in body["error"]
    assert counting.damaged


def test_what_is_not_here_is_503_and_what_cannot_be_meant_400(pages):
    assert get(pages, "/digest/counts?partition=2")[0] == 503
    assert get(pages, "/digest/nothing?partition=0")[0] == 503
    for target in (
        "/digest/counts",
        "/digest/?partition=0",
        "/digest/counts?partition=-1",
        "/digest/counts?partition=x",
    ):
        assert get(pages, target)[0] == 400
    for more in ("buckets=256", "buckets=", "buckets=1;2", "other=1"):
        assert get(pages, f"/digest/counts?partition=0&{more}")[0] == 400


def test_one_at_a_time_and_the_next_one_after_it(pages):
    with pages._one_at_a_time:
        assert get(pages, "/digest/counts?partition=0")[0] == 429
    assert get(pages, "/digest/counts?partition=0")[0] == 200


def test_an_app_that_does_not_run_yet_is_asked_again():
    def queries():
        raise StoreUnavailableError("the app does not run yet", hint="ask again")

    assert get(DigestPages(queries), "/digest/counts?partition=0")[0] == 503
