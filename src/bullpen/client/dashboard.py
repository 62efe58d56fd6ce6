"""All sessions and every change of one, over any number of connections."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from typing import Any

import msgspec
from websockets.asyncio.client import ClientConnection

from .reconnecting_socket import ReconnectingSocket
from .shapes import News, Session, SessionChanged, SessionList, SessionRemoved

Listing = Callable[[], Coroutine[Any, Any, list[Session]]]


class Dashboard:
    """`listing` fetches by REST what does not fit into the first message of a socket."""

    def __init__(self, link: ReconnectingSocket, listing: Listing) -> None:
        self._link = link
        self._listing = listing

    def news(self) -> AsyncGenerator[News, None]:
        return self._link.listen(self._listen)

    async def _listen(self, socket: ClientConnection) -> AsyncIterator[News]:
        while True:
            message = msgspec.json.decode(await socket.recv())
            self._link.progress()
            match message:
                case {"type": "sessions", "sessions": list(sessions), "total": int(total)}:
                    whole = len(sessions) >= total
                    yield SessionList(
                        sessions=msgspec.convert(sessions, list[Session]) if whole else await self._listing()
                    )
                case {"type": "session", "session": dict(session)}:
                    yield SessionChanged(session=msgspec.convert(session, Session))
                case {"type": "removed", "sessionId": str(session_id)}:
                    yield SessionRemoved(session_id=session_id)
