"""What a reverse proxy says of the request it passes on counts only when we were told to trust it.

From anybody else `X-Forwarded-*` is noise: believed, it would let a stranger choose an address, a scheme
and a Host.
"""

import ipaddress
from collections.abc import Iterable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from ..domain.errors import Invalid


class TrustedProxies:
    """Wraps the gate: it sees the client, the scheme and the Host as a trusted proxy saw them."""

    def __init__(self, app: ASGIApp, trusted: Iterable[str]) -> None:
        self._app = app
        self._networks = [_network(text) for text in trusted]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._networks and self._trusts((scope.get("client") or ("",))[0]):
            scope = self._believe(scope, Headers(scope=scope))
        await self._app(scope, receive, send)

    def _believe(self, scope: Scope, headers: Headers) -> Scope:
        told = dict(scope)
        if client := self._client(_words(headers, "x-forwarded-for")):
            told["client"] = (client, 0)
        match _words(headers, "x-forwarded-proto"):
            case ["http" | "https" as scheme]:
                told["scheme"] = scheme.replace("http", "ws") if scope["type"] == "websocket" else scheme
        if hosts := _words(headers, "x-forwarded-host"):
            others = [(name, value) for name, value in scope["headers"] if name != b"host"]
            told["headers"] = [*others, *((b"host", host.encode("latin-1")) for host in hosts)]
        return told

    def _client(self, addresses: list[str]) -> str | None:
        """Return the last address that is no trusted proxy; the client may have made up those before it."""
        strangers = (address for address in reversed(addresses) if not self._trusts(address))
        return next(strangers, addresses[0] if addresses else None)

    def _trusts(self, text: str) -> bool:
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            return False
        return any(address in network for network in self._networks)


def _words(headers: Headers, name: str) -> list[str]:
    return [word.strip() for value in headers.getlist(name) for word in value.split(",") if word.strip()]


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        raise Invalid(f"trusted_proxies has {text}, which is not an address or a network") from None
