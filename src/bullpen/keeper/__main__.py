"""`python -m bullpen.keeper <home> [<id>]`: take the lock, listen, and go on as a daemon when both worked.

The caller's process ends with 0 once the socket takes connections, or with 1 and a reason on stderr.
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

_PATIENCE = 60.0
_BACKLOG = 16


def main() -> None:
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
    _go_on_alone(directory, f"{name}.log")
    loop = EventLoop()
    KeeperService(name, listening, spools, float(os.environ.get("BULLPEN_KEEPER_PATIENCE", _PATIENCE)), loop)
    gc.freeze()
    loop.run()
    for suffix in (".sock", ".log", ".lock"):
        remove_file(name + suffix, directory)
    os.close(lock)


def _open_directories(home: str) -> tuple[int, int]:
    root = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    opened = open_directory(root, "keeper"), open_directory(root, "spool")
    for fd in opened:
        state = os.fstat(fd)
        if state.st_uid != os.getuid() or state.st_mode & 0o077:
            raise PermissionError(errno.EPERM, "others have access to the keeper's directories", home)
    os.close(root)
    return opened


def _lock(directory: int, name: str) -> int:
    """Held until this process ends, however it ends."""
    fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=directory)
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return fd


def _listen(directory: int, name: str) -> socket.socket:
    remove_file(name, directory)  # a dead keeper's: we have the lock
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(f"/proc/self/fd/{directory}/{name}")  # a path of any length
    listening.listen(_BACKLOG)
    return listening


def _go_on_alone(directory: int, log: str) -> None:
    """As a process that is nobody's child, in a session that has no terminal and cannot get one."""
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)  # a child's limit of seconds is for a moment ours
    os.chdir("/")
    null = os.open(os.devnull, os.O_RDWR)
    written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600, dir_fd=directory)
    for number, fd in enumerate((null, written, written)):
        os.dup2(fd, number)
    os.close(null)
    os.close(written)


if __name__ == "__main__":
    main()
