"""What a user allows to sandboxed runs: a host or a path, of one repository or of all."""

import re
from typing import Literal

from msgspec import Struct

from .errors import Invalid

MAX_LENGTH = 4096
_HOST = re.compile(r"\.?[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?(:[0-9]{1,5})?")

GrantKind = Literal["host", "read", "write"]


class SandboxGrant(Struct, frozen=True, kw_only=True, rename="camel"):
    """Permission for sealed runs to reach a host, or for all sandboxed runs to read or write a path."""

    id: str
    kind: GrantKind
    target: str  # a host name, `.name` for all its subdomains, `name:port`; or an absolute path
    repo_id: str | None = None  # None: of all sessions
    added_at: int = 0  # milliseconds since the epoch


def check_grant(grant: SandboxGrant) -> SandboxGrant:
    """Return the grant, or raise Invalid if its target is not valid."""
    if grant.kind == "host":
        if not _HOST.fullmatch(grant.target):
            raise Invalid(f"{grant.target[:200]!r} is not a host; give a name, .name or name:port")
    elif not grant.target.startswith("/") or "\0" in grant.target or len(grant.target) > MAX_LENGTH:
        raise Invalid(f"{grant.target[:200]!r} is not an absolute path")
    return grant
