"""Describe for a user what a run may read, write and reach."""

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from msgspec import Struct

from ..domain.sandbox import SandboxLevel
from .profile import PROXY_DIRECTORY, Profile


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
    mounts = {each.path: each.access for each in profile.mounts if each.path != PROXY_DIRECTORY}
    writable = [path for path, access in mounts.items() if access == "write"]
    read = [path for path, access in mounts.items() if access == "read"]
    protected = [path for path in read if _lies_in_writable(path, mounts)]
    return RunAccess(
        level=profile.level,
        writable=tuple(sorted(writable, key=lambda path: path != profile.workspace)),
        protected=tuple(protected),
        readable=tuple(path for path in read if path not in protected),
        hidden=tuple(path for path, access in mounts.items() if access in ("hidden", "masked")),
        has_network=profile.has_network,
        hosts=() if profile.has_network else tuple(dict.fromkeys(hosts)),
    )


def _lies_in_writable(path: str, mounts: Mapping[str, str]) -> bool:
    """Return whether the nearest mount above a path is writable."""
    above = (mounts[str(each)] for each in PurePosixPath(path).parents if str(each) in mounts)
    return next(above, "") == "write"
