"""The part of the client about workspace roots: where sessions are allowed."""

from .rest import Request, Rest
from .shapes import Root, RootList


class Roots:
    """The directories in which sessions may live. All of it needs the scope admin."""

    _rest: Rest

    async def roots(self) -> RootList:
        return await self._rest.call(RootList, Request("GET", "/api/roots"))

    async def add_root(self, path: str, *, force: bool = False, key: str | None = None) -> Root:
        """Allow sessions in a directory. `force` allows one that many programs use, such as the home."""
        body = {"path": path, "force": force}
        return await self._rest.call(Root, Request("POST", "/api/roots", body, key=key))

    async def remove_root(self, path: str) -> None:
        await self._rest.order(Request("DELETE", "/api/roots", query={"path": path}))
