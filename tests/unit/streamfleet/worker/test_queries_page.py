"""What docs/queries.md shows works as it stands there."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import streamfleet as sf
from streamfleet.partitioner import partition_for
from streamfleet.testing.manual_clock import ManualClock
from streamfleet.worker.http_messages import Request
from streamfleet.worker.peers import Peers
from streamfleet.worker.query_pages import QueryPages

PAGE = (Path(__file__).parents[4] / "docs/queries.md").read_text("utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_page_can_be_followed_step_by_step(new_app):
    declares, asks = blocks("python")
    scope = {}
    exec(declares, scope)
    app = new_app(topology=scope["topology"](), inputs={"clicks": 2, "prices": 2})
    for topic, store in (("clicks", "clicks-per-user"), ("prices", "prices")):
        for partition in (0, 1):
            app.open(app.place(store).task(partition))
        for line in blocks(topic)[0].splitlines():
            key, value, timestamp = line.split()
            app.work(store, partition_for(key.encode(), 2), topic, key, value, int(timestamp))
    pages = QueryPages("app", lambda: app.queries, Peers("app"), ManualClock(0))
    examples = blocks("http")
    for example in examples:
        line, status, body = example.split("\n", 2)
        path, _, query = line.removeprefix("GET ").partition("?")
        answer = pages.answer(Request("GET", path, query, {}))
        assert (answer.status, json.loads(answer.body)) == (int(status), json.loads(body)), line
    assert len(examples) == 7
    streams = SimpleNamespace(
        query=app.queries.run,
        query_metadata_for_key=app.queries.metadata_for_key,
        local_store_lags=app.queries.local_store_lags,
    )
    exec(asks, {"sf": sf, "streams": streams})
    app.close_all()
