"""The Host and Origin values that the server accepts, and its URLs; any other value is refused."""

import socket
from collections.abc import Iterable

from ..config import Config

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
WILDCARD_ADDRESSES = ("0.0.0.0", "::")
DEFAULT_PORT = {"http": 80, "https": 443}


class AllowedNames:
    """The exact Host and Origin values that requests may have."""

    def __init__(self, scheme: str, host: str, port: int, extra_hosts: Iterable[str] = ()) -> None:
        names = {*LOOPBACK, _bracketed(host)}
        hosts = {_with_port(name, scheme, port) for name in names} | {name.lower() for name in extra_hosts}
        self.hosts = frozenset(hosts)
        self.origins = frozenset(f"{scheme}://{name}" for name in hosts) | frozenset(
            f"https://{name.lower()}" for name in extra_hosts
        )

    def allows_host(self, values: list[str]) -> bool:
        """Return whether there is exactly one Host header, with an allowed value."""
        return len(values) == 1 and values[0] in self.hosts

    def allows_origin(self, values: list[str]) -> bool:
        """Return whether there is exactly one Origin header, with an allowed value."""
        return len(values) == 1 and values[0] in self.origins


class ServerUrls:
    """The URLs of the server: `url` for local programs, `public_url` for browsers on any machine."""

    def __init__(self, config: Config, port: int) -> None:
        is_wildcard = config.host in WILDCARD_ADDRESSES
        host = socket.gethostname() if is_wildcard else config.host
        self.names = AllowedNames(config.scheme, host, port, config.allowed_hosts)
        self.url = f"{config.scheme}://{_bracketed(host)}:{port}"
        self.public_url = self.url
        if config.allowed_hosts and config.trusted_proxies:
            self.public_url = f"https://{config.allowed_hosts[0]}"
        elif config.allowed_hosts and is_wildcard:
            self.public_url = f"{config.scheme}://{config.allowed_hosts[0]}"


def _bracketed(host: str) -> str:
    """Return a host for a URL: an IPv6 address in brackets, a name in lower case."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host.lower()


def _with_port(name: str, scheme: str, port: int) -> str:
    """Return the host with its port, unless it is the default port of the scheme."""
    return name if DEFAULT_PORT[scheme] == port else f"{name}:{port}"
