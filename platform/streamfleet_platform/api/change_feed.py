"""What changed, as it changes: one look per second at the service for all streams together, while there is a stream.

A stream is told which apps differ from what was last seen and the newest entry of the event log; whoever listens asks for what
it shows. What a slow reader has not taken yet is merged, so nothing piles up. Streams end by themselves after a while: a token
that was revoked meanwhile does not come back.
"""

# no `from __future__ import annotations`: FastAPI reads the annotations of the route

import asyncio
from collections import Counter
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import structlog
from fastapi import APIRouter, Depends, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent

from streamfleet_platform import views
from streamfleet_platform.api.access import Action, Principal
from streamfleet_platform.api.commands import Allowed
from streamfleet_platform.errors import SlowDownError
from streamfleet_platform.service import FleetService

log = structlog.get_logger(__name__)

EVERY_SECONDS = 1.0
MAX_STREAMS = 64
MAX_STREAMS_OF_ONE = 16
MAX_AGE_SECONDS = 300.0
_PAGE = 1000

routes = APIRouter(prefix="/v1")


class Subscription:
    """One stream's share: what it has not been told yet."""

    def __init__(self) -> None:
        self._apps: set[str] = set()
        self._last_event: int | None = None
        self._told = asyncio.Event()
        self.is_closed = False

    def tell(self, apps: set[str], last_event: int) -> None:
        self._apps |= apps
        self._last_event = last_event
        self._told.set()

    def close(self) -> None:
        self.is_closed = True
        self._told.set()

    async def take(self) -> dict[str, Any]:
        """What is new, when there is something; an empty dictionary when it is over."""
        await self._told.wait()
        self._told.clear()
        if self.is_closed:
            return {}
        taken, self._apps = sorted(self._apps), set()
        return {"apps": taken, "last_event": self._last_event}


class ChangeFeed:
    """All streams of a server. Lives on its event loop."""

    def __init__(self, service: FleetService, *, every_seconds: float = EVERY_SECONDS) -> None:
        self._service = service
        self._every_seconds = every_seconds
        self._streams: dict[Subscription, str] = {}
        self._watching: asyncio.Task[None] | None = None
        self._seen: dict[str, views.AppSummary] = {}
        self._last_event = 0

    @contextmanager
    def subscribed(self, caller: str) -> Iterator[Subscription]:
        """SlowDownError if there are too many."""
        if len(self._streams) >= MAX_STREAMS or Counter(self._streams.values())[caller] >= MAX_STREAMS_OF_ONE:
            raise SlowDownError(
                "there are as many streams as there may be",
                hint="close one",
            )
        stream = Subscription()
        if self._seen:  # by a stream before; who comes now has seen nothing
            stream.tell(set(self._seen), self._last_event)
        self._streams[stream] = caller
        if self._watching is None or self._watching.done():
            self._watching = asyncio.get_running_loop().create_task(self._watch())
        try:
            yield stream
        finally:
            del self._streams[stream]

    def close(self) -> None:
        """End all streams: a server that stops does not wait for them."""
        for stream in self._streams:
            stream.close()

    async def _watch(self) -> None:
        while self._streams:
            try:
                changed, last_event = await asyncio.to_thread(self._look)
            except Exception as error:  # the registry may be away for a moment; streams stay
                log.warning("the fleet could not be looked at for its streams", error=str(error))
            else:
                if changed or last_event != self._last_event:
                    self._last_event = last_event
                    for stream in self._streams:
                        stream.tell(changed, last_event)
            await asyncio.sleep(self._every_seconds)

    def _look(self) -> tuple[set[str], int]:
        apps = {app.name: app for app in self._service.apps()}
        changed = {name for name in apps.keys() | self._seen.keys() if apps.get(name) != self._seen.get(name)}
        self._seen = apps
        last = self._last_event
        while found := self._service.events(None, last, _PAGE):
            last = max(event.id for event in found)
        return changed, last


async def subscription(
    request: Request, principal: Annotated[Principal, Depends(Allowed(Action.LOOK))]
) -> AsyncIterator[Subscription]:
    feed: ChangeFeed = request.app.state.feed
    with feed.subscribed(principal.name) as stream:
        yield stream


@routes.get("/events/stream", response_class=EventSourceResponse)
async def stream(told: Annotated[Subscription, Depends(subscription)]) -> AsyncIterable[ServerSentEvent]:
    """`event: change` with `{"apps": [...], "last_event": id}` whenever something changed; the first one at once."""
    yield ServerSentEvent(event="open", data={}, retry=1000)
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + MAX_AGE_SECONDS
    while (left := ends_at - loop.time()) > 0:
        try:
            change = await asyncio.wait_for(told.take(), left)
        except TimeoutError:
            return
        if not change:
            return
        yield ServerSentEvent(event="change", data=change, id=str(change["last_event"]))
