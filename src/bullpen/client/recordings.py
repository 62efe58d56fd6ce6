"""Provide the client methods for recordings: export, import, rebuild and share."""

from collections.abc import AsyncIterator
from urllib.parse import quote

from .rest import RestClient, RestRequest
from .shapes import ImportResult, RebuildResult, Share


class RecordingCalls:
    """The methods of `Client` that send requests about recordings."""

    _rest: RestClient

    async def export(
        self, session_id: str, format: str = "zip", *, redact: bool = False, worker_id: str | None = None
    ) -> AsyncIterator[bytes]:
        """Yield a session as a file in chunks; `format` is zip, jsonl, markdown or cast."""
        query = {"format": format, "redact": "true" if redact else "false"}
        if worker_id:
            query["worker"] = worker_id
        path = f"/api/sessions/{quote(session_id, safe='')}/export"
        async with self._rest.stream(RestRequest("GET", path, query=query)) as response:
            async for data in response.body_chunks():
                yield data

    async def recording_cast(self, session_id: str, worker_id: str) -> AsyncIterator[bytes]:
        """Yield a terminal's recording as asciicast v2, in chunks."""
        path = (
            f"/api/sessions/{quote(session_id, safe='')}/workers/{quote(worker_id, safe='')}/recording.cast"
        )
        async with self._rest.stream(RestRequest("GET", path)) as response:
            async for data in response.body_chunks():
                yield data

    async def import_recording(self, session_id: str, data: bytes) -> ImportResult:
        """Import a zip file that a server exported."""
        path = f"/api/recordings/{quote(session_id, safe='')}"
        return await self._rest.call(ImportResult, RestRequest("PUT", path, raw=data, is_long=True))

    async def rebuild_recordings(self, session_id: str | None = None) -> RebuildResult:
        """Write the files of one recording, or of all, again from the database."""
        body = {"sessionId": session_id} if session_id else {}
        request = RestRequest("POST", "/api/recordings/rebuild", body, is_long=True)
        return await self._rest.call(RebuildResult, request)

    async def share(self, session_id: str, *, expires_in: int, key: str | None = None) -> Share:
        """Create a link that shows one session for `expires_in` seconds."""
        path = f"/api/sessions/{quote(session_id, safe='')}/share"
        return await self._rest.call(Share, RestRequest("POST", path, {"expiresIn": expires_in}, key=key))
