"""Apply `X-Forwarded-*` headers, but only from the reverse proxies that the settings trust.

From other clients they are ignored: otherwise a client could choose its address, the scheme and the Host.
"""

import ipaddress
from collections.abc import Iterable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from ..domain.errors import Invalid


class TrustedProxies:
    """ASGI layer around the gate; it replaces client, scheme and Host by those a trusted proxy forwards."""

    def __init__(self, app: ASGIApp, trusted: Iterable[str]) -> None:
        self._app = app
        self._networks = [_network(text) for text in trusted]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._networks and self._trusts((scope.get("client") or ("",))[0]):
            scope = self._apply_headers(scope, Headers(scope=scope))
        await self._app(scope, receive, send)

    def _apply_headers(self, scope: Scope, headers: Headers) -> Scope:
        """Return the scope with the values of the `X-Forwarded-*` headers."""
        forwarded = dict(scope)
        if client := self._client_address(_header_values(headers, "x-forwarded-for")):
            forwarded["client"] = (client, 0)
        match _header_values(headers, "x-forwarded-proto"):
            case ["http" | "https" as scheme]:
                forwarded["scheme"] = scheme.replace("http", "ws") if scope["type"] == "websocket" else scheme
        if hosts := _header_values(headers, "x-forwarded-host"):
            others = [(name, value) for name, value in scope["headers"] if name != b"host"]
            forwarded["headers"] = [*others, *((b"host", host.encode("latin-1")) for host in hosts)]
        return forwarded

    def _client_address(self, addresses: list[str]) -> str | None:
        """Return the last address that is no trusted proxy; the client may have made up those before it."""
        untrusted = (address for address in reversed(addresses) if not self._trusts(address))
        return next(untrusted, addresses[0] if addresses else None)

    def _trusts(self, text: str) -> bool:
        """Return whether an address belongs to a trusted proxy."""
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            return False
        return any(address in network for network in self._networks)


def _header_values(headers: Headers, name: str) -> list[str]:
    """Return the comma-separated values of a header."""
    return [text.strip() for value in headers.getlist(name) for text in value.split(",") if text.strip()]


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    """Return a network of the setting `trusted_proxies`, or raise Invalid."""
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        raise Invalid(f"trusted_proxies has {text}, which is not an address or a network") from None
