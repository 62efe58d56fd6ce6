"""Provide the client methods for tokens and for browsers that logged in."""

from typing import Any
from urllib.parse import quote

from .rest import RestClient, RestRequest
from .shapes import NewToken, RotatedToken, Token, TokenList


class TokenCalls:
    """The methods of `Client` about tokens. All of them need a token with scope admin."""

    _rest: RestClient

    async def tokens(self) -> list[Token]:
        """Return every token and logged-in browser except the owner's token, oldest first."""
        return (await self._rest.call(TokenList, RestRequest("GET", "/api/tokens"))).tokens

    async def add_token(
        self,
        name: str,
        *,
        scope: str | None = None,
        expires_in: int | None = None,
        key: str | None = None,
    ) -> NewToken:
        """Create a token, which expires after `expires_in` seconds. Only this answer contains its text."""
        optional = {"scope": scope, "expiresIn": expires_in}
        body: dict[str, Any] = {"name": name}
        body |= {field: value for field, value in optional.items() if value is not None}
        return await self._rest.call(NewToken, RestRequest("POST", "/api/tokens", body, key=key))

    async def revoke_token(self, token_id: str) -> None:
        """Revoke a token or log out a browser, and close its sockets."""
        await self._rest.send(RestRequest("DELETE", f"/api/tokens/{quote(token_id, safe='')}"))

    async def rotate_token(self, *, key: str | None = None) -> RotatedToken:
        """Replace the owner's token. Clients that use the old one lose access, this client included."""
        return await self._rest.call(RotatedToken, RestRequest("POST", "/api/tokens/rotate", key=key))
