"""Describe for a user what a run may read, write and reach."""

from collections.abc import Container, Iterable
from pathlib import PurePosixPath

from msgspec import Struct

from ..domain.sandbox import SandboxLevel
from .profile import PROXY_DIRECTORY, Mount, Profile


class RunAccess(Struct, frozen=True, kw_only=True):
    """The paths of a run. Of what lies in a listed path, only other access is listed again.

    What is not listed is readable: the system. At the level `open` nothing is listed.
    """

    level: SandboxLevel
    writable: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()  # inside writable directories: readable, and not writable
    readable: tuple[str, ...] = ()  # in hidden directories
    hidden: tuple[str, ...] = ()
    has_network: bool = True
    hosts: tuple[str, ...] = ()  # that a run without a network reaches through the proxy


def describe_access(profile: Profile, hosts: Iterable[str] = ()) -> RunAccess:
    """Return what a profile allows, the workspace first."""
    if profile.level == "open":
        return RunAccess(level="open")
    mounts = [each for each in profile.mounts if each.path != PROXY_DIRECTORY]
    writable = [each for each in mounts if each.access == "write"]
    directories = {each.path for each in writable if each.source is None}
    tops = {each.path for each in writable if not _lies_in(each, directories)} | {profile.workspace}
    read = [each for each in mounts if each.access == "read"]
    return RunAccess(
        level=profile.level,
        writable=tuple(sorted(tops, key=lambda path: (path != profile.workspace, path))),
        protected=tuple(each.path for each in read if _lies_in(each, directories)),
        readable=tuple(each.path for each in read if not _lies_in(each, directories)),
        hidden=tuple(each.path for each in mounts if each.access in ("hidden", "masked")),
        has_network=profile.has_network,
        hosts=() if profile.has_network else tuple(dict.fromkeys(hosts)),
    )


def _lies_in(mount: Mount, directories: Container[str]) -> bool:
    """Return whether a mount lies in one of the directories."""
    return any(str(each) in directories for each in PurePosixPath(mount.path).parents)
