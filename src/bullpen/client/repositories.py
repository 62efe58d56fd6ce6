"""Provide the client methods for registered git repositories."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from .rest import RestClient, RestRequest
from .shapes import Repository, RepositoryList


class RepositoryCalls:
    """The methods of `Client` about repositories."""

    _rest: RestClient

    async def repositories(self) -> list[Repository]:
        """Return all registered repositories."""
        found = await self._rest.call(RepositoryList, RestRequest("GET", "/api/repositories"))
        return found.repositories

    async def repository(self, repo_id: str) -> Repository:
        """Return one registered repository."""
        return await self._rest.call(Repository, RestRequest("GET", _repository(repo_id)))

    async def add_repository(
        self, path: str, *, name: str | None = None, key: str | None = None
    ) -> Repository:
        """Register a git repository."""
        body = {"path": path, "name": name}
        return await self._rest.call(Repository, RestRequest("POST", "/api/repositories", body, key=key))

    async def edit_repository(
        self,
        repo_id: str,
        *,
        name: str | None = None,
        agent_id: str | None = None,
        env: Mapping[str, str | None] | None = None,
        setup: str | None = None,
        cleanup: str | None = None,
        queue: Mapping[str, Any] | None = None,
    ) -> Repository:
        """Change settings of all sessions and worktrees of a repository; None leaves a setting as it is."""
        fields = {
            "name": name,
            "agentId": agent_id,
            "env": env,
            "setup": setup,
            "cleanup": cleanup,
            "queue": queue,
        }
        # An empty text is sent: it removes the setting.
        body = {name: value for name, value in fields.items() if value is not None}
        return await self._rest.call(Repository, RestRequest("PATCH", _repository(repo_id), body))

    async def delete_repository(self, repo_id: str) -> None:
        """Unregister a repository; its files stay."""
        await self._rest.send(RestRequest("DELETE", _repository(repo_id)))


def _repository(repo_id: str) -> str:
    """Return the URL path of a repository."""
    return f"/api/repositories/{quote(repo_id, safe='')}"
