"""Check the request for a new child and start its process, which inherits nothing of the keeper."""

from __future__ import annotations

import errno
import os
import re
import resource
import signal
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

KEEPER_UMASK = 0o077
_CHILD_UMASK = 0o022
_DEFAULT_SIGNALS = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
_FALLBACK_PATH = "/usr/local/bin:/usr/bin:/bin"
MAX_NAME_LENGTH = 1024  # characters
_WORKER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")


class SpawnRequest:
    """The checked fields of a spawn request.

    The constructor raises ValueError, TypeError or KeyError if a field is missing or wrong.
    """

    def __init__(self, header: dict[str, Any]) -> None:
        self.worker = worker_name(header["worker"])
        self.run = integer(header["run"])
        self.nonce = short_name(header["nonce"])
        self.argv = [_text(argument) for argument in header["argv"]]
        self.env = {_text(name): _text(value) for name, value in header["env"].items()}
        self.cwd = _text(header["cwd"])
        self.tty = bool(header["tty"])
        self.size = window_size(header) if self.tty else (0, 0)
        limits = header.get("limits") or {}
        self.limits = {_limit_number(name): integer(soft) for name, soft in limits.items()}
        self.umask = integer(header.get("umask", _CHILD_UMASK))
        if self.run < 0 or not self.argv:
            raise ValueError("a run is not negative, and argv not empty")


def integer(value: object) -> int:
    """Return the value if it is an int, or raise TypeError, also for true and 1.0, which equal 1."""
    if type(value) is not int:
        raise TypeError(f"{type(value).__name__} is not an integer")
    return value


def short_name(value: object) -> str:
    """Return the value if it is text short enough for every STATUS reply; else raise ValueError."""
    if not isinstance(value, str) or len(value) > MAX_NAME_LENGTH:
        raise ValueError(f"a name is text of at most {MAX_NAME_LENGTH} characters")
    return value


def worker_name(name: object) -> str:
    """Return the value if it is safe as a worker's name and as a directory's; else raise ValueError."""
    if not isinstance(name, str) or not _WORKER.fullmatch(name):
        raise ValueError(f"{str(name)[:100]!r} cannot name a worker")
    return name


def window_size(header: dict[str, Any]) -> tuple[int, int]:
    """Return the columns and rows that a request names; raise ValueError if no window can have them."""
    cols, rows = integer(header["cols"]), integer(header["rows"])
    if not (0 < cols < 1 << 16 and 0 < rows < 1 << 16):
        raise ValueError(f"no window has the size {cols}x{rows}")
    return cols, rows


def start_process(request: SpawnRequest, actions: list[tuple[Any, ...]]) -> int:
    """Start a process as the leader of a new session and return its pid.

    It inherits its directory, umask and limits, so the keeper takes these on for a moment.
    """
    old_limits = [(number, resource.getrlimit(number)) for number in request.limits]
    try:
        os.chdir(request.cwd)
        path = _find_program(request.argv[0], request.env)
        os.umask(request.umask)
        for number, (_, hard) in old_limits:
            resource.setrlimit(number, (request.limits[number], hard))
        return os.posix_spawn(
            path,
            request.argv,
            request.env,
            file_actions=actions,
            setsid=True,
            setsigmask=(),
            setsigdef=_DEFAULT_SIGNALS,
        )
    finally:
        os.umask(KEEPER_UMASK)
        with suppress(OSError, ValueError):  # the process has started: its pid must not be lost
            for number, limit in old_limits:
                resource.setrlimit(number, limit)
            os.chdir("/")


def start_time(pid: int) -> int:
    """Return when a process was started, in clock ticks since the boot; 0 if that cannot be read.

    Together with the pid and the boot id it identifies a process for ever.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[19])
    except OSError:
        return 0


def _find_program(name: str, env: dict[str, str]) -> str:
    """Return the path of a program, searched like execvp in the child's PATH; or raise OSError."""
    if "/" in name:
        return name
    failure = errno.ENOENT
    for directory in env.get("PATH", _FALLBACK_PATH).split(":"):
        path = os.path.join(directory or ".", name)
        if os.path.isfile(path):
            if os.access(path, os.X_OK):
                return path
            failure = errno.EACCES
    raise OSError(failure, os.strerror(failure))


def _limit_number(name: str) -> int:
    """Return the number of a resource limit such as `nofile`; raise ValueError if there is none."""
    number: int | None = getattr(resource, f"RLIMIT_{name.upper()}", None)
    if number is None:
        raise ValueError(f"there is no limit named {name}")
    return number


def _text(value: object) -> str:
    """Return the value if it is text without NUL, or raise ValueError."""
    if not isinstance(value, str) or "\0" in value:
        raise ValueError(f"{str(value)[:100]!r} is not text without NUL")
    return value
