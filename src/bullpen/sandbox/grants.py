"""Store what users have allowed to sandboxed runs. A grant applies to runs that start after it."""

import asyncio
import os
from pathlib import Path, PurePosixPath

import msgspec
import structlog
from msgspec.structs import replace

from .. import clock
from ..domain.errors import Forbidden, NotFound
from ..domain.grants import PORTS, GrantKind, SandboxGrant, check_grant
from ..domain.ids import new_id
from ..store.records import RecordStore
from .profile import Mount
from .protected import ProtectedPlaces
from .proxy import allows

log = structlog.get_logger()

KEY = "sandbox_grants"  # of the setting that stores the grants


class SandboxGrants:
    """The grants of one server."""

    def __init__(self, records: RecordStore, protected: ProtectedPlaces) -> None:
        self._records = records
        self._protected = protected
        self._all: tuple[SandboxGrant, ...] = ()
        self._changing = asyncio.Lock()  # a change reads the grants and writes all of them

    async def load(self) -> None:
        """Read the grants from the database, when the server starts."""
        self._all = msgspec.convert(await self._records.setting(KEY) or [], tuple[SandboxGrant, ...])

    @property
    def all(self) -> tuple[SandboxGrant, ...]:
        """All grants, the oldest first."""
        return self._all

    def hosts(self, repo_id: str | None) -> list[str]:
        """Return the hosts that sealed runs of a repository may reach."""
        return [each.target for each in self._of(repo_id) if each.kind == "host"]

    def mounts(self, repo_id: str | None) -> tuple[Mount, ...]:
        """Return the paths that sandboxed runs of a repository may read or write, as far as they exist."""
        paths = ((each.target, each.kind) for each in self._of(repo_id) if each.kind != "host")
        return tuple(Mount(path, kind) for path, kind in paths if os.path.exists(path) and _has_no_link(path))

    def covers(self, kind: GrantKind, target: str, repo_id: str | None) -> bool:
        """Return whether grants allow a host (`name` or `name:port`), or the access to a real path."""
        if kind == "host":
            name, _, port = target.partition(":")
            return allows(self.hosts(repo_id), name, int(port or PORTS[0]))  # `is_host` is true
        return self.granted_path(kind, target, repo_id) is not None

    def granted_path(self, kind: GrantKind, target: str, repo_id: str | None) -> str | None:
        """Return the granted real path that is a real path or lies above it, or None."""
        kinds = ("write",) if kind == "write" else ("read", "write")
        granted = (each.target for each in self._of(repo_id) if each.kind in kinds)
        found = (path for path in granted if PurePosixPath(target).is_relative_to(path))
        return next(filter(_has_no_link, found), None)

    async def add(self, kind: GrantKind, target: str, repo_id: str | None) -> SandboxGrant:
        """Add a grant, or return the one that exists. Raise Forbidden for what belongs to Bullpen.

        The grant of a link is that of its target: a run may write where the link is, and lead it elsewhere.
        """
        grant = check_grant(
            SandboxGrant(id=new_id(), kind=kind, target=target, repo_id=repo_id, added_at=clock.now_ms())
        )
        if kind != "host":
            target = await asyncio.to_thread(os.path.realpath, target)
            grant = check_grant(replace(grant, target=target))
            if self._protected.is_below(target):
                raise Forbidden(f"{target} belongs to Bullpen; no run may read it")
            if kind == "write" and await asyncio.to_thread(self._protected.overlaps, Path(target)):
                raise Forbidden(f"{target} contains files of Bullpen; allow a directory in it")
        async with self._changing:
            for each in self._all:
                if (each.kind, each.target, each.repo_id) == (kind, target, repo_id):
                    return each
            await self._store((*self._all, grant))
        log.warning("security: allowed to sandboxed runs", kind=kind, target=target, repository=repo_id)
        return grant

    async def remove(self, grant_id: str) -> None:
        """Remove a grant. Runs that have begun keep their paths; their hosts are refused from now on."""
        async with self._changing:
            kept = tuple(each for each in self._all if each.id != grant_id)
            if len(kept) == len(self._all):
                raise NotFound(f"there is no grant {grant_id}")
            await self._store(kept)
        log.warning("security: no longer allowed to sandboxed runs", grant=grant_id)

    async def _store(self, grants: tuple[SandboxGrant, ...]) -> None:
        """Store and use a new list of grants."""
        await self._records.set_setting(KEY, grants)
        self._all = grants

    def _of(self, repo_id: str | None) -> list[SandboxGrant]:
        """Return the grants of a repository and those of all."""
        return [each for each in self._all if each.repo_id in (None, repo_id)]


def _has_no_link(path: str) -> bool:
    """Return whether neither a granted path nor a directory above it was replaced by a link."""
    return os.path.realpath(path) == path
