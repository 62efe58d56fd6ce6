"""Turn the command of a run into the command that runs it in its sandbox, or refuse to run it."""

import asyncio
import errno
import os
import shutil
import stat
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from msgspec.structs import replace

from .. import clock
from ..domain.errors import Conflict
from ..server_path import SERVER_PATH
from .bubblewrap import bubblewrap_command
from .files import walk_beneath
from .landlock import landlock_command
from .mechanism import Mechanism, find_mechanism
from .profile import PROXY_DIRECTORY, PROXY_PORT, Profile
from .proxy import SOCKET_NAME

_BRIDGE = Path(__file__).with_name("proxy_bridge.py")
# See "Secure-execution mode" in ld.so(8).
_OF_C_LIBRARY = frozenset(
    {
        *("GCONV_PATH", "GETCONF_DIR", "GLIBC_TUNABLES", "HOSTALIASES", "LOCALDOMAIN", "LOCPATH"),
        *("MUSL_LOCPATH", "NIS_PATH", "NLSPATH", "RESOLV_HOST_CONF", "RES_OPTIONS", "TZDIR"),
    }
)
MAX_AGE_SECONDS = 5.0  # of the finding that bubblewrap does not work: a user may install it meanwhile


class MechanismFinder:
    """Remembers which mechanism works on this machine, and tries again while that is not the best one."""

    def __init__(self) -> None:
        self._found: Mechanism | None = None
        self._path: str | None = None
        self._found_at = 0.0
        self._finding = threading.Lock()

    async def find(self) -> Mechanism:
        """Return the mechanism of this machine."""
        path = str(SERVER_PATH)
        if found := self._known(path):
            return found
        return await asyncio.to_thread(self._find, path)

    def _known(self, path: str) -> Mechanism | None:
        """Return the mechanism that was found with this PATH; None if it has to be found again."""
        is_final = self._found is not None and self._found.name == "bubblewrap"
        is_new = clock.monotonic() - self._found_at < MAX_AGE_SECONDS
        return self._found if path == self._path and (is_final or is_new) else None

    def _find(self, path: str) -> Mechanism:
        """Find the mechanism, unless another thread has just found it. It runs programs."""
        with self._finding:
            if (found := self._known(path)) is None:
                found = self._found = find_mechanism({"PATH": path})
                self._found_at, self._path = clock.monotonic(), path
            return found


MECHANISMS = MechanismFinder()


class SandboxedCommand(NamedTuple):
    """A command and its environment, for the keeper or a process of the server."""

    argv: list[str]
    env: dict[str, str]


async def sandboxed_command(
    profile: Profile, argv: Sequence[str], env: Mapping[str, str], cwd: str
) -> SandboxedCommand:
    """Return how to run `argv` as the profile says. Raise Conflict if no mechanism can do that.

    An agent chooses variables of its terminals. Those that make the loader run code act in the sandbox only.
    """
    if profile.level == "open":
        return SandboxedCommand(list(argv), dict(env))
    mechanism = await MECHANISMS.find()
    _require_program(argv[0], env, cwd)
    inside = {name: value for name, value in env.items() if _is_of_loader(name)}
    outside = {name: value for name, value in env.items() if name not in inside}
    return SandboxedCommand(command_for(mechanism, profile, argv, cwd, inside), outside)


def _is_of_loader(name: str) -> bool:
    """Return whether a variable can make the C library or a shell run code."""
    return name.startswith(("LD_", "MALLOC_", "BASH_FUNC_")) or name in _OF_C_LIBRARY


def command_for(
    mechanism: Mechanism,
    profile: Profile,
    argv: Sequence[str],
    cwd: str,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> list[str]:
    """Return the command that runs `argv` by this mechanism, with more variables, or raise Conflict."""
    if profile.proxy is not None:
        relay = [str(_BRIDGE), f"{PROXY_DIRECTORY}/{SOCKET_NAME}", str(PROXY_PORT)]
        argv = [sys.executable, "-I", "-S", *relay, "--", *argv]
    match mechanism.name:
        case "bubblewrap":
            assert mechanism.programs is not None
            return bubblewrap_command(mechanism.programs, profile, argv, cwd, _inodes(profile), variables)
        case "landlock":
            return landlock_command(
                replace(profile, variables=(*variables.items(), *profile.variables)), argv
            )
        case _:
            raise Conflict(
                f"not started: this machine cannot run a sandbox ({mechanism.problem}). {mechanism.advice}. "
                "To run agents without protection, choose the sandbox level open"
            )


def _inodes(profile: Profile) -> dict[str, str]:
    """Return the device and inode of what other runs could replace while this one starts.

    Raise Conflict if one of the paths leads over a link now: when the profile was planned, none did.
    """
    found = {}
    root = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for path in profile.shared:
            opened = walk_beneath(root, path[1:], os.O_PATH | os.O_CLOEXEC)
            status = os.fstat(opened)
            os.close(opened)
            if stat.S_ISLNK(status.st_mode):
                raise OSError(errno.ELOOP, "a link")
            found[path] = f"{status.st_dev}:{status.st_ino}"
    except OSError as error:
        raise Conflict(f"not started: {path} was changed meanwhile ({error.strerror})") from None
    finally:
        os.close(root)
    return found


def _require_program(name: str, env: Mapping[str, str], cwd: str) -> None:
    """Raise Conflict if there is no such program, with the keeper's text. The sandbox would start and end."""
    path = os.path.join(cwd, name) if "/" in name else name
    if shutil.which(path, path=env.get("PATH", os.defpath)) is None:
        number = errno.EACCES if os.path.isfile(path) else errno.ENOENT
        raise Conflict(f"cannot start {name}: {os.strerror(number)}")
