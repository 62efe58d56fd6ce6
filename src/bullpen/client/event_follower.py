"""Yield the events of a session, each once and in order, over any number of connections."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from typing import Any

import msgspec
from websockets.asyncio.client import ClientConnection

from .reconnecting_socket import ReconnectingSocket, ReconnectNeeded
from .shapes import Event, EventPage

FetchPage = Callable[[int], Coroutine[Any, Any, EventPage]]


class EventFollower:
    """A reader of the events of one session; `seq` is the last event it has yielded.

    `fetch_page` reads by REST the events that a snapshot replaces. `looking`: a person reads the events, so
    the server sends no notifications about this session.
    """

    def __init__(
        self, link: ReconnectingSocket, fetch_page: FetchPage, after: int, looking: bool = False
    ) -> None:
        self._link = link
        self._fetch_page = fetch_page
        self._looking = looking
        self.seq = after

    def events(self) -> AsyncGenerator[Event, None]:
        """Yield every event after `seq` until the caller closes the generator."""
        return self._link.listen(self._read_events)

    async def _read_events(self, socket: ClientConnection) -> AsyncIterator[Event]:
        """Subscribe after the last yielded event, and yield the events that one connection receives."""
        if self._looking:
            await socket.send(msgspec.json.encode({"type": "looking", "visible": True}).decode())
        await socket.send(msgspec.json.encode({"type": "subscribe", "after": self.seq}).decode())
        while True:
            message = msgspec.json.decode(await socket.recv())
            self._link.reset_backoff()
            match message:
                case {"type": "events", "events": list(items)}:
                    for event in self._admit(msgspec.convert(items, list[Event])):
                        yield event
                case {"type": "snapshot", "seq": int(seq)}:
                    async for event in self._catch_up(seq):
                        yield event

    def _admit(self, events: list[Event]) -> Iterator[Event]:
        """Yield the events that were not yielded before; raise ReconnectNeeded if one is missing."""
        for event in events:
            if event.seq <= self.seq:
                continue
            if event.seq != self.seq + 1:
                raise ReconnectNeeded  # an event is missing
            self.seq = event.seq
            yield event

    async def _catch_up(self, seq: int) -> AsyncIterator[Event]:
        """Fetch and yield the events up to `seq`, which the server replaced by a snapshot.

        Raise ReconnectNeeded if the server does not return them.
        """
        while self.seq < seq:
            page = await self._fetch_page(self.seq)
            if not page.events:
                raise ReconnectNeeded
            for event in self._admit(page.events):
                yield event
