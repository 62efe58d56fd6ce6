"""The part of the client that carries recordings: out as files, in again, shown to others."""

from collections.abc import AsyncIterator
from urllib.parse import quote

from .rest import Request, Rest
from .shapes import Imported, Rebuilt, Share


class Recordings:
    """What can be asked about recordings."""

    _rest: Rest

    async def export(
        self, session_id: str, format: str = "zip", *, redact: bool = False, worker_id: str | None = None
    ) -> AsyncIterator[bytes]:
        """A session as a file, piece by piece."""
        query = {"format": format, "redact": "true" if redact else "false"}
        if worker_id:
            query["worker"] = worker_id
        path = f"/api/sessions/{quote(session_id, safe='')}/export"
        async with self._rest.stream(Request("GET", path, query=query)) as response:
            async for data in response.pieces():
                yield data

    async def import_recording(self, session_id: str, data: bytes) -> Imported:
        """Takes in a zip that was exported elsewhere."""
        path = f"/api/recordings/{quote(session_id, safe='')}"
        return await self._rest.call(Imported, Request("PUT", path, raw=data, long=True))

    async def rebuild_recordings(self, session_id: str | None = None) -> Rebuilt:
        """Writes the files of a recording, or of all, anew from the log."""
        body = {"sessionId": session_id} if session_id else {}
        request = Request("POST", "/api/recordings/rebuild", body, long=True)
        return await self._rest.call(Rebuilt, request)

    async def share(self, session_id: str, *, expires_in: int, key: str | None = None) -> Share:
        """A link that shows one session, for so many seconds."""
        path = f"/api/sessions/{quote(session_id, safe='')}/share"
        return await self._rest.call(Share, Request("POST", path, {"expiresIn": expires_in}, key=key))
