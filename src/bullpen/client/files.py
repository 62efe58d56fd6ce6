"""The client's part for what has changed in a workspace, and what lies in it."""

from typing import Any
from urllib.parse import quote

from .rest import RestClient, RestRequest
from .shapes import ServerShape


class FileDiff(ServerShape, frozen=True, kw_only=True):
    """One changed file; `note` says why its patch is not all there is."""

    path: str
    status: str
    old_path: str | None = None
    additions: int | None = None
    deletions: int | None = None
    binary: bool = False
    staged: bool = False
    unstaged: bool = False
    patch: str = ""
    note: str | None = None


class Diff(ServerShape, frozen=True, kw_only=True):
    base: str
    files: list[FileDiff]
    additions: int
    deletions: int
    note: str | None = None


class FileCalls:
    """What can be asked about files."""

    _rest: RestClient

    async def diff(self, session_id: str, *, base: str | None = None, worker_id: str | None = None) -> Diff:
        """What has changed in a session's workspace since its branch left the main line."""
        query: dict[str, Any] = {"base": base, "workerId": worker_id}
        given = {name: value for name, value in query.items() if value is not None}
        path = f"/api/sessions/{quote(session_id, safe='')}/diff"
        return await self._rest.call(Diff, RestRequest("GET", path, query=given, long=True))
