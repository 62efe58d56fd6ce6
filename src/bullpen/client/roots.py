"""The part of the client about workspace roots: where sessions are allowed."""

from .rest import RestClient, RestRequest
from .shapes import Root, RootList


class RootCalls:
    """The directories in which sessions may live. All of it needs the scope admin."""

    _rest: RestClient

    async def roots(self) -> RootList:
        return await self._rest.call(RootList, RestRequest("GET", "/api/roots"))

    async def add_root(self, path: str, *, force: bool = False, key: str | None = None) -> Root:
        """Allow sessions in a directory. `force` allows one that many programs use, such as the home."""
        body = {"path": path, "force": force}
        return await self._rest.call(Root, RestRequest("POST", "/api/roots", body, key=key))

    async def remove_root(self, path: str) -> None:
        await self._rest.order(RestRequest("DELETE", "/api/roots", query={"path": path}))
