"""Provide the client methods that find and clone projects, and name their branches and files."""

from typing import Literal
from urllib.parse import quote

from .rest import RestClient, RestRequest
from .shapes import ServerShape


class ProjectDirectory(ServerShape, frozen=True, kw_only=True):
    """A directory that can become a project; `is_allowed` if it is inside a workspace root."""

    path: str
    is_repository: bool
    is_allowed: bool


class DirectoryChoices(ServerShape, frozen=True, kw_only=True):
    """The directories that continue a typed path; `more` are left out."""

    directories: list[ProjectDirectory]
    more: int = 0


class FoundRepositories(ServerShape, frozen=True, kw_only=True):
    """Repositories that are not registered, and the directory into which clones go by default."""

    repositories: list[ProjectDirectory]
    clone_into: str


class RepositoryClone(ServerShape, frozen=True, kw_only=True):
    """A clone of a repository; `progress` is the last line that git printed."""

    id: str
    url: str
    path: str
    state: Literal["running", "done", "failed", "cancelled"]
    progress: str = ""
    error: str | None = None
    repo_id: str | None = None


class BranchList(ServerShape, frozen=True, kw_only=True):
    """The branches of a repository, the one that is checked out first."""

    branches: list[str]


class FileNameList(ServerShape, frozen=True, kw_only=True):
    """The names of the files in a workspace; `more` if there are others."""

    files: list[str]
    more: bool = False


class ProjectCalls:
    """The methods of `Client` about projects. Directories and clones need a token with scope admin."""

    _rest: RestClient

    async def directories(self, path: str = "") -> DirectoryChoices:
        """Return the directories whose path begins with `path`."""
        return await self._rest.call(
            DirectoryChoices, RestRequest("GET", "/api/directories", query={"path": path})
        )

    async def found_repositories(self) -> FoundRepositories:
        """Return the git repositories near the home directory that are not registered."""
        return await self._rest.call(FoundRepositories, RestRequest("GET", "/api/directories/repositories"))

    async def start_clone(self, url: str, into: str = "", *, key: str | None = None) -> RepositoryClone:
        """Start to clone a repository into a new directory inside `into`; it is registered at the end."""
        body = {"url": url, "into": into}
        return await self._rest.call(RepositoryClone, RestRequest("POST", "/api/clones", body, key=key))

    async def clone(self, clone_id: str) -> RepositoryClone:
        """Return how far a clone is, or raise NotFound after a restart of the server."""
        return await self._rest.call(RepositoryClone, RestRequest("GET", _clone(clone_id)))

    async def cancel_clone(self, clone_id: str) -> None:
        """End a clone and remove its files; do nothing if it has ended."""
        await self._rest.send(RestRequest("DELETE", _clone(clone_id)))

    async def branches(self, repo_id: str) -> list[str]:
        """Return the branches of a repository: the one that is checked out, then the latest."""
        path = f"/api/repositories/{quote(repo_id, safe='')}/branches"
        return (await self._rest.call(BranchList, RestRequest("GET", path))).branches

    async def file_names(self, session_id: str, *, worker_id: str | None = None) -> FileNameList:
        """Return the names of the files in the workspace of a session or of one of its workers."""
        path = f"/api/sessions/{quote(session_id, safe='')}/file-names"
        query = {"workerId": worker_id} if worker_id else {}
        return await self._rest.call(FileNameList, RestRequest("GET", path, query=query))


def _clone(clone_id: str) -> str:
    """Return the URL path of a clone."""
    return f"/api/clones/{quote(clone_id, safe='')}"
