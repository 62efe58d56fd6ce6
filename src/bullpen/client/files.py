"""Provide the client methods for the files of a workspace, its changes, and comments on them."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from ..domain.errors import Invalid
from .conversation_shapes import PromptResult
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


class DiffComment(ServerShape, frozen=True, kw_only=True):
    """A comment on lines of a changed file, counted on one `side` of the diff: old or new."""

    path: str
    line: int
    text: str
    end_line: int | None = None
    side: str = "new"


class DirectoryEntry(ServerShape, frozen=True, kw_only=True):
    """An entry of a directory; its type is file, directory, link or other."""

    name: str
    type: str
    size: int = 0


class DirectoryListing(ServerShape, frozen=True, kw_only=True):
    """The entries of a directory of a workspace; `more` are left out."""

    path: str
    entries: list[DirectoryEntry]
    more: int = 0


class FileCalls:
    """The methods of `Client` about files and changes of a workspace."""

    _rest: RestClient

    async def diff(self, session_id: str, *, base: str | None = None, worker_id: str | None = None) -> Diff:
        """Return the changes in a session's workspace since `base`, by default since its branch began."""
        query: dict[str, Any] = {"base": base, "workerId": worker_id}
        parameters = {name: value for name, value in query.items() if value is not None}
        path = _session(session_id, "diff")
        return await self._rest.call(Diff, RestRequest("GET", path, query=parameters, is_long=True))

    async def comment(
        self,
        session_id: str,
        comments: Iterable[DiffComment],
        *,
        text: str = "",
        prompt_id: str | None = None,
        worker_id: str | None = None,
        role: str | None = None,
        busy: str | None = None,
        key: str | None = None,
    ) -> PromptResult:
        """Send comments on the changes to an agent as one prompt, which begins with `text`."""
        optional = {"promptId": prompt_id, "workerId": worker_id, "role": role, "busy": busy}
        body: dict[str, Any] = {"comments": list(comments), "text": text}
        body |= {name: value for name, value in optional.items() if value is not None}
        request = RestRequest("POST", _session(session_id, "diff", "comments"), body, key=key)
        return await self._rest.call(PromptResult, request)

    async def directory(self, session_id: str, path: str = "") -> DirectoryListing:
        """Return the entries of a directory of the workspace, by default of the workspace itself."""
        return await self._rest.call(DirectoryListing, RestRequest("GET", _file(session_id, path)))

    async def read_file(self, session_id: str, path: str) -> bytes:
        """Return the content of a file of the workspace; raise Invalid for a directory."""
        reply = await self._rest.read(RestRequest("GET", _file(session_id, path)))
        if reply.headers.get("content-type", "").startswith("application/json"):  # files have other types
            raise Invalid(f"{path} is a directory")
        return reply.body


def _session(session_id: str, *parts: str) -> str:
    """Return the URL path of a part of a session."""
    return "/".join(("/api/sessions", quote(session_id, safe=""), *parts))


def _file(session_id: str, path: str) -> str:
    """Return the URL path of a file or directory of the workspace."""
    return _session(session_id, "files", *([quote(path)] if path else []))
