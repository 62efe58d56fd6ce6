"""Follow all sessions and their changes over any number of connections."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from typing import Any

import msgspec
from websockets.asyncio.client import ClientConnection

from .reconnecting_socket import ReconnectingSocket
from .shapes import News, Session, SessionChanged, SessionList, SessionRemoved

FetchSessions = Callable[[], Coroutine[Any, Any, list[Session]]]


class Dashboard:
    """A stream of session changes. `fetch_sessions` reads the sessions that do not fit into one message."""

    def __init__(self, link: ReconnectingSocket, fetch_sessions: FetchSessions) -> None:
        self._link = link
        self._fetch_sessions = fetch_sessions

    def news(self) -> AsyncGenerator[News, None]:
        """Yield a SessionList for every connection, then each change."""
        return self._link.listen(self._read_news)

    async def _read_news(self, socket: ClientConnection) -> AsyncIterator[News]:
        """Yield the news of one connection; fetch the list of sessions by REST if it is too long."""
        while True:
            message = msgspec.json.decode(await socket.recv())
            self._link.reset_backoff()
            match message:
                case {"type": "sessions", "sessions": list(sessions), "total": int(total)}:
                    whole = len(sessions) >= total
                    yield SessionList(
                        sessions=msgspec.convert(sessions, list[Session])
                        if whole
                        else await self._fetch_sessions()
                    )
                case {"type": "session", "session": dict(session)}:
                    yield SessionChanged(session=msgspec.convert(session, Session))
                case {"type": "removed", "sessionId": str(session_id)}:
                    yield SessionRemoved(session_id=session_id)
