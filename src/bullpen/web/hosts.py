"""The names we answer to: exact lists of Host and Origin, so that no foreign page or name gets in."""

import ipaddress
from collections.abc import Iterable

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
DEFAULT_PORT = {"http": 80, "https": 443}


def is_loopback(host: str) -> bool:
    """Whether listening on this address stays on this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Names:
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


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host.lower()


def _with_port(name: str, scheme: str, port: int) -> str:
    return name if DEFAULT_PORT[scheme] == port else f"{name}:{port}"
