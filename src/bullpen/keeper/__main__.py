"""`python -m bullpen.keeper <home> [<id>]`: take the lock, listen on the socket, and become a daemon.

The command exits with 0 once the socket accepts connections, or with 1 and a reason on stderr.
"""

from __future__ import annotations

import errno
import fcntl
import gc
import os
import signal
import socket
import sys

from .directories import open_directory, remove_file
from .loop import EventLoop
from .service import KeeperService
from .spawn import KEEPER_UMASK
from .time_slice import shorten_time_slice

_IDLE_SECONDS = 60.0  # without a server and without children, until the keeper ends
_BACKLOG = 16  # connections


def main() -> None:
    """Run the command: start a keeper as a daemon, and remove its files when it ends."""
    home = sys.argv[1]
    name = sys.argv[2] if len(sys.argv) > 2 else os.urandom(4).hex()
    os.umask(KEEPER_UMASK)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    try:
        directory, spools = _open_directories(home)
        lock = _lock(directory, f"{name}.lock")
        listening = _listen(directory, f"{name}.sock")
    except OSError as error:
        sys.exit(f"keeper {name}: {error}")
    _become_daemon(directory, f"{name}.log")
    shorten_time_slice()
    loop = EventLoop()
    idle_timeout = float(os.environ.get("BULLPEN_KEEPER_PATIENCE", _IDLE_SECONDS))
    KeeperService(name, listening, spools, idle_timeout, loop)
    gc.freeze()
    loop.run()
    for suffix in (".sock", ".log", ".lock"):
        remove_file(name + suffix, directory)
    os.close(lock)


def _open_directories(home: str) -> tuple[int, int]:
    """Open the directories `keeper` and `spool`, and make them if they are missing.

    Raise PermissionError if other users have access to them.
    """
    root = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    opened = open_directory(root, "keeper"), open_directory(root, "spool")
    for fd in opened:
        state = os.fstat(fd)
        if state.st_uid != os.getuid() or state.st_mode & 0o077:
            raise PermissionError(errno.EPERM, "others have access to the keeper's directories", home)
    os.close(root)
    return opened


def _lock(directory: int, name: str) -> int:
    """Take a lock that this process holds until its end, however it ends."""
    fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=directory)
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return fd


def _listen(directory: int, name: str) -> socket.socket:
    """Return a listening Unix socket with this name in the directory."""
    remove_file(name, directory)  # left by a dead keeper: this process has the lock
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(f"/proc/self/fd/{directory}/{name}")  # the full path may be too long for an address
    listening.listen(_BACKLOG)
    return listening


def _become_daemon(directory: int, log: str) -> None:
    """Detach this process from its parent, in a session without a terminal; log what it writes to stderr."""
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)  # the limits of a new child are the keeper's for a moment
    os.chdir("/")
    null = os.open(os.devnull, os.O_RDWR)
    written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600, dir_fd=directory)
    for number, fd in enumerate((null, written, written)):
        os.dup2(fd, number)
    os.close(null)
    os.close(written)


if __name__ == "__main__":
    main()
