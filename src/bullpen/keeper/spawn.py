"""Starting a process without letting it inherit anything of the keeper."""

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
MAX_NAME = 1024  # characters
_WORKER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")


class SpawnRequest:
    """What a spawn request asks for, checked; ValueError, TypeError or KeyError when it makes no sense."""

    def __init__(self, header: dict[str, Any]) -> None:
        self.worker = worker_name(header["worker"])
        self.run = integer(header["run"])
        self.nonce = short_name(header["nonce"])
        self.argv = [_text(word) for word in header["argv"]]
        self.env = {_text(name): _text(value) for name, value in header["env"].items()}
        self.cwd = _text(header["cwd"])
        self.tty = bool(header["tty"])
        self.size = window_size(header) if self.tty else (0, 0)
        self.limits = {_limit(name): integer(soft) for name, soft in (header.get("limits") or {}).items()}
        self.umask = integer(header.get("umask", _CHILD_UMASK))
        if self.run < 0 or not self.argv:
            raise ValueError("a run is not negative, and argv not empty")


def integer(value: object) -> int:
    """Return a number that is one in JSON too: true and 1.0 equal 1 and would be told again as they came."""
    if type(value) is not int:
        raise TypeError(f"{type(value).__name__} is not an integer")
    return value


def short_name(value: object) -> str:
    """Return a name that is kept and told again with every STATUS."""
    if not isinstance(value, str) or len(value) > MAX_NAME:
        raise ValueError(f"a name is text of at most {MAX_NAME} characters")
    return value


def worker_name(name: object) -> str:
    if not isinstance(name, str) or not _WORKER.fullmatch(name):
        raise ValueError(f"{str(name)[:100]!r} cannot name a worker")
    return name


def window_size(header: dict[str, Any]) -> tuple[int, int]:
    cols, rows = integer(header["cols"]), integer(header["rows"])
    if not (0 < cols < 1 << 16 and 0 < rows < 1 << 16):
        raise ValueError(f"no window has the size {cols}x{rows}")
    return cols, rows


def start(order: SpawnRequest, actions: list[tuple[Any, ...]]) -> int:
    """The pid of the new process, leader of its own session."""
    kept = [(number, resource.getrlimit(number)) for number in order.limits]
    try:
        os.chdir(order.cwd)
        path = _find(order.argv[0], order.env)
        os.umask(order.umask)
        for number, (_, hard) in kept:
            resource.setrlimit(number, (order.limits[number], hard))
        return os.posix_spawn(
            path,
            order.argv,
            order.env,
            file_actions=actions,
            setsid=True,
            setsigmask=(),
            setsigdef=_DEFAULT_SIGNALS,
        )
    finally:
        os.umask(KEEPER_UMASK)
        with suppress(OSError, ValueError):  # the process has started: its pid must not be lost
            for number, limit in kept:
                resource.setrlimit(number, limit)
            os.chdir("/")


def start_time(pid: int) -> int:
    """Return when a process began, in clock ticks since the boot; 0 if that cannot be read now.

    Together with the pid it identifies the process for ever.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[19])
    except OSError:
        return 0


def _find(name: str, env: dict[str, str]) -> str:
    """The file to run, as execvp would find it in the child's own PATH."""
    if "/" in name:
        return name
    refused = errno.ENOENT
    for directory in env.get("PATH", _FALLBACK_PATH).split(":"):
        path = os.path.join(directory or ".", name)
        if os.path.isfile(path):
            if os.access(path, os.X_OK):
                return path
            refused = errno.EACCES
    raise OSError(refused, os.strerror(refused))


def _limit(name: str) -> int:
    number: int | None = getattr(resource, f"RLIMIT_{name.upper()}", None)
    if number is None:
        raise ValueError(f"there is no limit named {name}")
    return number


def _text(value: object) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise ValueError(f"{str(value)[:100]!r} is not text without NUL")
    return value
