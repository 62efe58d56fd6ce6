"""What a user allows to sandboxed runs: a host or a path, of one repository or of all."""

import re
from typing import Literal

from msgspec import Struct

from .errors import Invalid

MAX_TARGET_LENGTH = 4096  # PATH_MAX of Linux
PORTS = (80, 443)  # of hosts that are allowed without a port
_HOST = re.compile(r"\.?[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?(:[0-9]{1,5})?")

GrantKind = Literal["host", "read", "write"]


class SandboxGrant(Struct, frozen=True, kw_only=True, rename="camel"):
    """Permission for sealed runs to reach a host, or for all sandboxed runs to read or write a path."""

    id: str
    kind: GrantKind
    target: str  # a host name, `.name` for all its subdomains, `name:port`; or an absolute path
    repo_id: str | None = None  # None: of all sessions
    added_at: int = 0  # milliseconds since the epoch


def host_target(host: str, port: int) -> str:
    """Return the target of a grant for a port of a host; the usual ports need not be named."""
    return host if port in PORTS else f"{host}:{port}"


def is_host(target: str) -> bool:
    """Return whether a text is a host that can be allowed."""
    return _HOST.fullmatch(target) is not None


def check_grant(grant: SandboxGrant) -> SandboxGrant:
    """Return the grant, or raise Invalid if its target is not valid."""
    if grant.kind == "host":
        if not is_host(grant.target):
            raise Invalid(f"{grant.target[:200]!r} is not a host; give a name, .name or name:port")
    elif not grant.target.startswith("/") or "\0" in grant.target or len(grant.target) > MAX_TARGET_LENGTH:
        raise Invalid(f"{grant.target[:200]!r} is not an absolute path")
    return grant
