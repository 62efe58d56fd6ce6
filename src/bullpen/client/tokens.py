"""The part of the client that gives out keys: tokens, and the browsers that logged in."""

from typing import Any
from urllib.parse import quote

from .rest import RestClient, RestRequest
from .shapes import NewToken, RotatedToken, Token, TokenList


class TokenCalls:
    """What an admin can do about who may come in."""

    _rest: RestClient

    async def tokens(self) -> list[Token]:
        """Every token and device but the owner's, the oldest first."""
        return (await self._rest.call(TokenList, RestRequest("GET", "/api/tokens"))).tokens

    async def add_token(
        self,
        name: str,
        *,
        scope: str | None = None,
        expires_in: int | None = None,
        key: str | None = None,
    ) -> NewToken:
        """A new token, for so many seconds or for ever; its text is in this answer only."""
        optional = {"scope": scope, "expiresIn": expires_in}
        body: dict[str, Any] = {"name": name}
        body |= {field: value for field, value in optional.items() if value is not None}
        return await self._rest.call(NewToken, RestRequest("POST", "/api/tokens", body, key=key))

    async def revoke_token(self, token_id: str) -> None:
        """Ends a token or a device, with its sockets."""
        await self._rest.order(RestRequest("DELETE", f"/api/tokens/{quote(token_id, safe='')}"))

    async def rotate_token(self, *, key: str | None = None) -> RotatedToken:
        """Gives the owner another token; a client that was given the old one is locked out."""
        return await self._rest.call(RotatedToken, RestRequest("POST", "/api/tokens/rotate", key=key))
