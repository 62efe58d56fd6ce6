"""A REST client of the worktrees of a registered repository."""

import os
from pathlib import Path
from typing import Any

from support.repositories import Repo
from support.server import Server


class RegisteredRepository:
    """A repository that was registered at a running server."""

    def __init__(self, server: Server, repo: Repo, repo_id: str) -> None:
        self.server = server
        self.repo = repo
        self.id = repo_id

    @classmethod
    async def register(cls, server: Server, repo: Repo) -> "RegisteredRepository":
        registered = await server.call("POST", "/api/repositories", 201, json={"path": str(repo.path)})
        return cls(server, repo, registered["id"])

    @property
    def url(self) -> str:
        return f"/api/repositories/{self.id}/worktrees"

    async def set(self, **settings: Any) -> Any:
        return await self.server.call("PATCH", f"/api/repositories/{self.id}", json=settings)

    async def add(self, expect: int = 201, **body: Any) -> Any:
        return await self.server.call("POST", self.url, expect, json=body)

    async def get(self) -> Any:
        return await self.server.call("GET", self.url)

    async def list(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self.get())["worktrees"]
        return found

    async def remove(self, name: str, expect: int = 200, *, force: bool = False) -> Any:
        query = {"force": "true"} if force else {}
        return await self.server.call("DELETE", f"{self.url}/{name}", expect, params=query)

    async def restore(self, name: str, expect: int = 200, **body: Any) -> Any:
        return await self.server.call("POST", f"{self.url}/{name}/restore", expect, json=body)


def directory_contents(top: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return mode, modification time and content (or link target) of each file below a directory."""
    found = {}
    for path in sorted(top.rglob("*")):
        status = path.lstat()
        if path.is_symlink():
            data = os.readlink(path).encode()
        else:
            data = path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(top))] = (status.st_mode, status.st_mtime_ns, data)
    return found
