"""Provide the client methods for worktrees."""

from urllib.parse import quote

from ..domain.errors import NotFound
from .rest import RestClient, RestRequest
from .shapes import TrashedWorktree, Worktree, WorktreeList


class WorktreeCalls:
    """The methods of `Client` about the worktrees of a repository."""

    _rest: RestClient

    async def worktrees(self, repo_id: str) -> WorktreeList:
        """Return the worktrees that exist, that can be restored, and that are being created."""
        return await self._rest.call(WorktreeList, RestRequest("GET", f"{_repository(repo_id)}/worktrees"))

    async def add_worktree(
        self,
        repo_id: str,
        *,
        branch: str | None = None,
        base: str | None = None,
        name: str | None = None,
        existing: bool = False,
        prompt: str | None = None,
        key: str | None = None,
    ) -> Worktree:
        """Create a worktree for a new or an existing branch; `prompt` helps to choose a name."""
        body = {"branch": branch, "base": base, "name": name, "existing": existing, "prompt": prompt}
        request = RestRequest("POST", f"{_repository(repo_id)}/worktrees", body, key=key, is_long=True)
        return await self._rest.call(Worktree, request)

    async def remove_worktree(self, repo_id: str, name: str, *, force: bool = False) -> TrashedWorktree:
        """Move a worktree to the trash, or raise Conflict with details of the work that would be lost."""
        query = {"force": "true"} if force else {}
        request = RestRequest("DELETE", _worktree(repo_id, name), query=query, is_long=True)
        trashed = await self._rest.remove(TrashedWorktree, request)
        return trashed or await self._last_trashed(repo_id, name)

    async def restore_worktree(
        self, repo_id: str, name: str, *, id: str | None = None, key: str | None = None
    ) -> Worktree:
        """Restore a removed worktree; `id` selects one of several with the same name."""
        request = RestRequest(
            "POST", f"{_worktree(repo_id, name)}/restore", {"id": id}, key=key, is_long=True
        )
        return await self._rest.call(Worktree, request)

    async def _last_trashed(self, repo_id: str, name: str) -> TrashedWorktree:
        """Return the newest removed worktree with this name, or raise NotFound."""
        trash = (await self.worktrees(repo_id)).trash
        found = [each for each in trash if each.name == name]
        if not found:
            raise NotFound(f"no worktree {name}")
        return max(found, key=lambda each: each.removed_at)


def _repository(repo_id: str) -> str:
    """Return the URL path of a repository."""
    return f"/api/repositories/{quote(repo_id, safe='')}"


def _worktree(repo_id: str, name: str) -> str:
    """Return the URL path of a worktree."""
    return f"{_repository(repo_id)}/worktrees/{quote(name, safe='')}"
