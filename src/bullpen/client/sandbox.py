"""Provide the client methods for the sandbox."""

from urllib.parse import quote

from .rest import RestClient, RestRequest
from .shapes import GrantedAccess, GrantedAccessList, MachineSandbox, RunSandboxAccess


class SandboxCalls:
    """The methods of `Client` about the sandbox."""

    _rest: RestClient

    async def sandbox(self) -> MachineSandbox:
        """Return the sandbox that the machine of the server offers."""
        return await self._rest.call(MachineSandbox, RestRequest("GET", "/api/sandbox"))

    async def run_sandbox(self, session_id: str, worker_id: str) -> RunSandboxAccess:
        """Return what a run of a worker could read, write and reach if it began now."""
        path = f"/api/sessions/{quote(session_id, safe='')}/workers/{quote(worker_id, safe='')}/sandbox"
        return await self._rest.call(RunSandboxAccess, RestRequest("GET", path))

    async def sandbox_grants(self) -> list[GrantedAccess]:
        """Return what users have allowed to sandboxed runs."""
        return (await self._rest.call(GrantedAccessList, RestRequest("GET", "/api/sandbox/grants"))).grants

    async def allow_in_sandbox(self, kind: str, target: str, repo_id: str | None = None) -> GrantedAccess:
        """Allow sealed runs to reach a `host`, or sandboxed runs to `read` or `write` a path."""
        body = {"kind": kind, "target": target, "repoId": repo_id}
        return await self._rest.call(GrantedAccess, RestRequest("PUT", "/api/sandbox/grants", body))

    async def remove_sandbox_grant(self, grant_id: str) -> None:
        """Remove a grant; runs that have begun keep their paths."""
        await self._rest.send(RestRequest("DELETE", f"/api/sandbox/grants/{quote(grant_id)}"))
