import asyncio
import json

import pytest

from streamfleet_platform.api import change_feed
from streamfleet_platform.api.change_feed import MAX_STREAMS, MAX_STREAMS_OF_ONE, ChangeFeed
from streamfleet_platform.errors import SlowDownError


@pytest.fixture
def feed(fleet):
    return ChangeFeed(fleet, every_seconds=0.005)


async def taken(stream):
    return await asyncio.wait_for(stream.take(), 10)


def test_the_first_look_tells_of_all_apps_and_later_ones_of_what_changed(feed, fleet):
    async def listen():
        with feed.subscribed("a") as stream:
            assert await taken(stream) == {"apps": ["clicks", "orders"], "last_event": 0}
            fleet.apps_by_name["orders"] = fleet.apps_by_name["orders"].model_copy(update={"lag_records": 99})
            assert (await taken(stream))["apps"] == ["orders"]
            del fleet.apps_by_name["clicks"]
            assert (await taken(stream))["apps"] == ["clicks"]

    asyncio.run(listen())


def test_an_event_is_a_change(feed, fleet):
    async def listen():
        with feed.subscribed("a") as stream:
            await taken(stream)
            fleet._note("orders", "something", "somebody")
            assert await taken(stream) == {"apps": [], "last_event": 1}

    asyncio.run(listen())


def test_who_comes_later_is_told_of_everything_too(feed, fleet):
    async def listen():
        with feed.subscribed("a") as first:
            await taken(first)
            with feed.subscribed("b") as second:
                assert (await taken(second))["apps"] == ["clicks", "orders"]

    asyncio.run(listen())


def test_what_a_slow_reader_missed_is_merged(feed, fleet):
    async def listen():
        with feed.subscribed("a") as slow, feed.subscribed("b") as quick:
            await taken(slow)
            await taken(quick)
            for lag in range(50):
                name = ("orders", "clicks")[lag % 2]
                fleet.apps_by_name[name] = fleet.apps_by_name[name].model_copy(update={"lag_records": 1000 + lag})
                await taken(quick)
            assert (await taken(slow))["apps"] == ["clicks", "orders"]
            assert not slow._told.is_set()

    asyncio.run(listen())


def test_a_registry_that_is_away_for_a_moment_ends_no_stream(feed, fleet, monkeypatch):
    async def listen():
        with feed.subscribed("a") as stream:
            await taken(stream)
            monkeypatch.setattr(fleet, "apps", lambda: 1 / 0)
            await asyncio.sleep(0.02)
            monkeypatch.undo()
            fleet._note("orders", "something", "somebody")
            assert (await taken(stream))["last_event"] == 1

    asyncio.run(listen())


def test_streams_are_bounded_in_all_and_for_each(feed):
    async def listen():
        from contextlib import ExitStack

        with ExitStack() as stack:
            for _ in range(MAX_STREAMS_OF_ONE):
                stack.enter_context(feed.subscribed("a"))
            with pytest.raises(SlowDownError):
                stack.enter_context(feed.subscribed("a"))
            for number in range(MAX_STREAMS - MAX_STREAMS_OF_ONE):
                stack.enter_context(feed.subscribed(f"b{number}"))
            with pytest.raises(SlowDownError):
                stack.enter_context(feed.subscribed("c"))
        with feed.subscribed("a"):
            pass

    asyncio.run(listen())


def test_a_server_that_stops_ends_its_streams(feed):
    async def listen():
        with feed.subscribed("a") as stream:
            await taken(stream)
            feed.close()
            assert await taken(stream) == {}

    asyncio.run(listen())


def test_over_http_it_is_a_stream_of_server_sent_events(http, app, fleet, monkeypatch):
    monkeypatch.setattr(change_feed, "MAX_AGE_SECONDS", 0.3)
    app.state.feed = ChangeFeed(fleet, every_seconds=0.01)
    response = http().get("/v1/events/stream")
    assert response.headers["content-type"].startswith("text/event-stream")
    messages = [dict(line.split(": ", 1) for line in part.split("\n")) for part in response.text.strip().split("\n\n")]
    assert [message["event"] for message in messages] == ["open", "change"]
    assert json.loads(messages[1]["data"]) == {"apps": ["clicks", "orders"], "last_event": 0}
    assert app.state.feed._streams == {}


def test_over_http_too_many_are_told_to_wait(http, app, monkeypatch):
    monkeypatch.setattr(change_feed, "MAX_STREAMS", 0)
    response = http().get("/v1/events/stream")
    assert response.status_code == 429
    assert response.headers["retry-after"] == "1"
