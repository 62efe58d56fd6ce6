"""Provide the client methods for the sandbox."""

from .rest import RestClient, RestRequest
from .shapes import MachineSandbox


class SandboxCalls:
    """The methods of `Client` about the sandbox."""

    _rest: RestClient

    async def sandbox(self) -> MachineSandbox:
        """Return the sandbox that the machine of the server offers."""
        return await self._rest.call(MachineSandbox, RestRequest("GET", "/api/sandbox"))
