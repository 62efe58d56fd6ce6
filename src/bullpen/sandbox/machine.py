"""Find the paths of this machine that every sandbox profile needs: homes, secrets, toolchains, caches."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ..config import Config
from .installations import TOOLCHAINS, installation_roots
from .profile import MachinePaths
from .protected import SECRET_PLACES, own_places
from .root_rules import homes

# Directories with sockets, temporary files and homes, also those of other users: root can read them.
_PRIVATE = ("/run", "/tmp", "/var/tmp", "/home", "/root")
# A root above one of them cannot be hidden: no program would start.
_SYSTEM = ("/usr", "/bin", "/lib", "/etc")
# What the system needs in /run.
_NEEDED_IN_RUN = ("/etc/resolv.conf", "/run/current-system", "/run/opengl-driver")
# Readable only for root, who may run the server.
_SYSTEM_SECRETS = (
    *("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d"),
    *("/etc/ssl/private", "/etc/wireguard", "/etc/NetworkManager/system-connections", "/var/lib/docker"),
    # Sockets with which a member of a group gets the rights of root.
    *("/var/lib/lxd", "/var/lib/incus", "/var/snap/lxd"),
)
_SSH = Path("/etc/ssh")
_SHOWN_IN_HOME = (".gitconfig", ".config/git")


def machine_paths(
    config: Config, roots: Iterable[str], env: Mapping[str, str], more_homes: Iterable[Path] = ()
) -> MachinePaths:
    """Return the paths of this machine; `roots` are the workspace roots, `more_homes` further homes."""
    user_homes = [str(home) for home in (*homes(), *more_homes)]
    secrets = [os.path.join(home, place) for home in user_homes for place in SECRET_PLACES]
    secrets += [*_SYSTEM_SECRETS, *map(str, _SSH.glob("ssh_host_*_key"))]
    own = list(map(str, own_places(config)))
    toolchains = [
        *installation_roots(env, user_homes),
        *(os.path.join(home, place) for home in user_homes for place in (*TOOLCHAINS, *_SHOWN_IN_HOME)),
        *map(str, config.sandbox_toolchains),
        *_NEEDED_IN_RUN,
    ]
    hidden = list(_real([*secrets, *own]))
    hideable = [each for each in roots if not _holds_system(os.path.realpath(each))]
    return MachinePaths(
        homes=tuple(_real(user_homes)),
        private=tuple(path for path in _real([*_PRIVATE, *hideable]) if os.path.isdir(path)),
        own=tuple(_real(own)),
        secrets=tuple(_real(secrets)),
        files=frozenset(path for path in hidden if not os.path.isdir(path)),
        toolchains=existing_paths(toolchains),
        caches=existing_paths(map(str, config.sandbox_caches)),
        private_cache=str(_private_cache(config.home)),
        empty=str(empty_file(config.home)),
    )


def _holds_system(directory: str) -> bool:
    """Return whether a directory is one of the system's, or is above one."""
    return any(Path(os.path.realpath(each)).is_relative_to(directory) for each in _SYSTEM)


def _private_cache(home: Path) -> Path:
    """Return the directory that all runs see as ~/.cache; make it if necessary."""
    path = home / "sandbox" / "cache"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def empty_file(home: Path) -> Path:
    """Return the empty file in the data directory that is shown in place of masked files."""
    path = home / "sandbox" / "empty"
    if not path.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o444)
    return path


def _real(paths: Iterable[str]) -> Iterator[str]:
    """Yield the real path of each path that exists, once."""
    yield from dict.fromkeys(os.path.realpath(path) for path in paths if os.path.lexists(path))


def existing_paths(paths: Iterable[str]) -> tuple[str, ...]:
    """Return each path that exists, with its real path: programs may use either."""
    existing = [path for path in paths if os.path.exists(path)]
    return tuple(dict.fromkeys(each for path in existing for each in (path, os.path.realpath(path))))
