"""The names we answer to: exact lists of Host and Origin, so that no foreign page or name gets in."""

import ipaddress
import socket
from collections.abc import Iterable

from ..config import Config

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
EVERY_ADDRESS = ("0.0.0.0", "::")
DEFAULT_PORT = {"http": 80, "https": 443}


def is_loopback(host: str) -> bool:
    """Whether listening on this address stays on this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class AllowedNames:
    """The exact Host and Origin values that are ours. Everything else is refused."""

    def __init__(self, scheme: str, host: str, port: int, more: Iterable[str] = ()) -> None:
        names = {*LOOPBACK, _bracketed(host)}
        hosts = {_with_port(name, scheme, port) for name in names} | {name.lower() for name in more}
        self.hosts = frozenset(hosts)
        self.origins = frozenset(f"{scheme}://{name}" for name in hosts) | frozenset(
            f"https://{name.lower()}" for name in more
        )

    def knows_host(self, values: list[str]) -> bool:
        """Exactly one Host header, and exactly one of ours."""
        return len(values) == 1 and values[0] in self.hosts

    def knows_origin(self, values: list[str]) -> bool:
        return len(values) == 1 and values[0] in self.origins


class ServerUrls:
    """Where the server is: for programs on this machine, and for people wherever they are."""

    def __init__(self, config: Config, port: int) -> None:
        every = config.host in EVERY_ADDRESS
        shown = socket.gethostname() if every else config.host
        self.names = AllowedNames(config.scheme, shown, port, config.allowed_hosts)
        self.url = f"{config.scheme}://{_bracketed(shown)}:{port}"
        self.public_url = self.url
        if config.allowed_hosts and config.trusted_proxies:
            self.public_url = f"https://{config.allowed_hosts[0]}"
        elif config.allowed_hosts and every:
            self.public_url = f"{config.scheme}://{config.allowed_hosts[0]}"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host.lower()


def _with_port(name: str, scheme: str, port: int) -> str:
    return name if DEFAULT_PORT[scheme] == port else f"{name}:{port}"
