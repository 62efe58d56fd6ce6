"""Provide the client methods for changed files."""

from typing import Any
from urllib.parse import quote

from .rest import RestClient, RestRequest
from .shapes import ServerShape


class FileDiff(ServerShape, frozen=True, kw_only=True):
    """One changed file of a workspace; `note` says why its patch is incomplete."""

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
    """All changes of a workspace compared with the commit `base`."""

    base: str
    files: list[FileDiff]
    additions: int
    deletions: int
    note: str | None = None


class FileCalls:
    """The methods of `Client` that read changed files."""

    _rest: RestClient

    async def diff(self, session_id: str, *, base: str | None = None, worker_id: str | None = None) -> Diff:
        """Return the changes in a session's workspace since `base`, by default since its branch began."""
        query: dict[str, Any] = {"base": base, "workerId": worker_id}
        parameters = {name: value for name, value in query.items() if value is not None}
        path = f"/api/sessions/{quote(session_id, safe='')}/diff"
        return await self._rest.call(Diff, RestRequest("GET", path, query=parameters, is_long=True))
