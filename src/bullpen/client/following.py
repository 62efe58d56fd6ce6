"""The events of a session from a number on, each once and in order, over any number of connections."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from typing import Any

import msgspec
from websockets.asyncio.client import ClientConnection

from .reconnecting_socket import ReconnectingSocket, ReconnectNeeded
from .shapes import Event, EventPage

Pages = Callable[[int], Coroutine[Any, Any, EventPage]]


class EventFollower:
    """Where a follower stands. `pages` fetches by REST what a snapshot skips.

    `looking`: a person reads along, who need not be told elsewhere of what waits.
    """

    def __init__(self, link: ReconnectingSocket, pages: Pages, after: int, looking: bool = False) -> None:
        self._link = link
        self._pages = pages
        self._looking = looking
        self.seq = after

    def events(self) -> AsyncGenerator[Event, None]:
        return self._link.listen(self._listen)

    async def _listen(self, socket: ClientConnection) -> AsyncIterator[Event]:
        if self._looking:
            await socket.send(msgspec.json.encode({"type": "looking", "visible": True}).decode())
        await socket.send(msgspec.json.encode({"type": "subscribe", "after": self.seq}).decode())
        while True:
            message = msgspec.json.decode(await socket.recv())
            self._link.progress()
            match message:
                case {"type": "events", "events": list(items)}:
                    for event in self._admit(msgspec.convert(items, list[Event])):
                        yield event
                case {"type": "snapshot", "seq": int(seq)}:
                    async for event in self._catch_up(seq):
                        yield event

    def _admit(self, events: list[Event]) -> Iterator[Event]:
        """The new ones of these; known ones come again after a reconnection."""
        for event in events:
            if event.seq <= self.seq:
                continue
            if event.seq != self.seq + 1:
                raise ReconnectNeeded  # a number was left out
            self.seq = event.seq
            yield event

    async def _catch_up(self, seq: int) -> AsyncIterator[Event]:
        """What a snapshot stands for. A follower wants every event, not their sum."""
        while self.seq < seq:
            page = await self._pages(self.seq)
            if not page.events:
                raise ReconnectNeeded
            for event in self._admit(page.events):
                yield event
