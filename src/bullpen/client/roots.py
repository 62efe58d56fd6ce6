"""Provide the client methods for workspace roots, the directories in which sessions are allowed."""

from .rest import RestClient, RestRequest
from .shapes import Root, RootList


class RootCalls:
    """The methods of `Client` about workspace roots. All of them need a token with scope admin."""

    _rest: RestClient

    async def roots(self) -> RootList:
        """Return the workspace roots."""
        return await self._rest.call(RootList, RestRequest("GET", "/api/roots"))

    async def add_root(self, path: str, *, force: bool = False, key: str | None = None) -> Root:
        """Allow sessions in a directory. `force` allows one that many programs use, such as the home."""
        body = {"path": path, "force": force}
        return await self._rest.call(Root, RestRequest("POST", "/api/roots", body, key=key))

    async def remove_root(self, path: str) -> None:
        """Allow no new sessions in a directory; running sessions continue."""
        await self._rest.send(RestRequest("DELETE", "/api/roots", query={"path": path}))
