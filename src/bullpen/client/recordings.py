"""The part of the client that carries recordings: out as files, in again, shown to others."""

from collections.abc import AsyncIterator
from urllib.parse import quote

from .rest import RestClient, RestRequest
from .shapes import ImportResult, RebuildResult, Share


class RecordingCalls:
    """What can be asked about recordings."""

    _rest: RestClient

    async def export(
        self, session_id: str, format: str = "zip", *, redact: bool = False, worker_id: str | None = None
    ) -> AsyncIterator[bytes]:
        """A session as a file, piece by piece."""
        query = {"format": format, "redact": "true" if redact else "false"}
        if worker_id:
            query["worker"] = worker_id
        path = f"/api/sessions/{quote(session_id, safe='')}/export"
        async with self._rest.stream(RestRequest("GET", path, query=query)) as response:
            async for data in response.pieces():
                yield data

    async def import_recording(self, session_id: str, data: bytes) -> ImportResult:
        """Takes in a zip that was exported elsewhere."""
        path = f"/api/recordings/{quote(session_id, safe='')}"
        return await self._rest.call(ImportResult, RestRequest("PUT", path, raw=data, long=True))

    async def rebuild_recordings(self, session_id: str | None = None) -> RebuildResult:
        """Writes the files of a recording, or of all, anew from the log."""
        body = {"sessionId": session_id} if session_id else {}
        request = RestRequest("POST", "/api/recordings/rebuild", body, long=True)
        return await self._rest.call(RebuildResult, request)

    async def share(self, session_id: str, *, expires_in: int, key: str | None = None) -> Share:
        """A link that shows one session, for so many seconds."""
        path = f"/api/sessions/{quote(session_id, safe='')}/share"
        return await self._rest.call(Share, RestRequest("POST", path, {"expiresIn": expires_in}, key=key))
