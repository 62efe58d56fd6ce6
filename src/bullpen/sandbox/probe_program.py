"""Attempt, from inside a run, what its sandbox must prevent. Run as a script with the targets as JSON.

It imports nothing of Bullpen and prints JSON: for each probe whether the attempt succeeded. Attempts to write
are judged from outside, because a run may write in a directory that only it sees.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import signal
import socket
import sys
import termios
from collections.abc import Callable
from typing import Any

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MNT_DETACH = 2
PTRACE_ATTACH, PTRACE_DETACH = 16, 17
SECONDS = 5
MARK = "written by a probe"
LIBC = ctypes.CDLL(None, use_errno=True)


def read(path: str) -> bool:
    """Read a file, and look for the secret in it if it has one."""
    with open(path, "rb") as file:
        return bool(file.read(4096))


def read_memory(pid: int) -> bool:
    """Read the first mapping of another process."""
    with open(f"/proc/{pid}/maps") as maps:
        start = int(maps.readline().partition("-")[0], 16)
    with open(f"/proc/{pid}/mem", "rb") as memory:
        memory.seek(start)
        return bool(memory.read(1))


def write(path: str) -> bool:
    """Append to a file, and make its directory if necessary."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "a") as file:
        file.write(f"\n# {MARK}\n")
    return True


def replace(path: str) -> bool:
    """Put another file in the place of one, by a rename."""
    with open("replacement", "w") as file:
        file.write(f"# {MARK}\n")
    os.replace("replacement", path)
    return True


def rewrite(path: str) -> bool:
    """Write the content of a setting of the kernel again."""
    with open(path) as setting:
        content = setting.read()
    with open(path, "w") as setting:
        setting.write(content)
    return True


def link(path: str, how: Callable[[str, str], None]) -> bool:
    """Read a file through a new link in the workspace."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink("link")
    how(path, "link")
    return read("link")


def connect(family: int, kind: int, address: Any) -> bool:
    """Connect to a socket and receive an answer."""
    with socket.socket(family, kind) as connection:
        connection.settimeout(SECONDS)
        connection.connect(address)
        if kind == socket.SOCK_DGRAM:
            connection.send(b"hello")
        return bool(connection.recv(16))


def connect_path(path: str) -> bool:
    """Connect to a socket by its path, which may be longer than an address can be."""
    os.chdir(os.path.dirname(path))
    return connect(socket.AF_UNIX, socket.SOCK_STREAM, os.path.basename(path))


def signal_process(pid: int) -> bool:
    """Send a signal that has no effect."""
    os.kill(pid, signal.SIGCONT)
    return True


def trace(pid: int) -> bool:
    """Attach to a process as a debugger."""
    if LIBC.ptrace(PTRACE_ATTACH, pid, None, None) != 0:
        return False
    os.waitpid(pid, 0)
    LIBC.ptrace(PTRACE_DETACH, pid, None, None)
    return True


def mount_over(path: str) -> bool:
    """Mount an empty file system, in a mount namespace of its own."""
    if LIBC.unshare(CLONE_NEWNS) != 0:
        return False
    return bool(LIBC.mount(b"none", path.encode(), b"tmpfs", 0, None) == 0)


def read_after_unmount(path: str, covers: list[str]) -> bool:
    """Remove the mounts that cover a file, in new namespaces, and read it."""
    if LIBC.unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0:
        LIBC.unshare(CLONE_NEWNS)
    for cover in covers:
        LIBC.umount2(cover.encode(), MNT_DETACH)
    return read(path)


def read_after_chroot(path: str) -> bool:
    """Change to the root of the first process, and read a file there."""
    with contextlib.suppress(OSError):
        os.chroot("/proc/1/root")
    return read(path)


def make_device() -> bool:
    """Make a device file for the first disk."""
    os.mknod("device", 0o600 | 0o060000, os.makedev(7, 0))
    os.unlink("device")
    return True


def type_into(terminal: str) -> bool:
    """Write to a terminal of another run."""
    descriptor = os.open(terminal, os.O_RDWR | os.O_NOCTTY)
    with contextlib.suppress(OSError):
        fcntl.ioctl(descriptor, termios.TIOCSTI, b"x")
    return os.write(descriptor, b"x") == 1


def gain_privileges() -> bool:
    """Return whether a setuid program would get the rights of its owner."""
    with open("/proc/self/status") as status:
        return "NoNewPrivs:\t0" in status.read()


def has_capabilities() -> bool:
    """Return whether this process has a capability."""
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("CapEff:"))
    return int(line.split()[1], 16) != 0


def send_raw() -> bool:
    """Open a raw socket."""
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP):
        return True


KINDS: dict[str, Callable[..., bool]] = {
    "read": read,
    "read_memory": read_memory,
    "write": write,
    "replace": replace,
    "rewrite": rewrite,
    "hard_link": lambda path: link(path, os.link),
    "symbolic_link": lambda path: link(path, os.symlink),
    "connect_path": connect_path,
    "connect_abstract": lambda name: connect(socket.AF_UNIX, socket.SOCK_STREAM, f"\0{name}"),
    "connect_tcp": lambda host, port: connect(socket.AF_INET, socket.SOCK_STREAM, (host, port)),
    "connect_tcp6": lambda host, port: connect(socket.AF_INET6, socket.SOCK_STREAM, (host, port)),
    "connect_udp": lambda host, port: connect(socket.AF_INET, socket.SOCK_DGRAM, (host, port)),
    "signal": signal_process,
    "trace": trace,
    "mount": mount_over,
    "unmount": read_after_unmount,
    "chroot": read_after_chroot,
    "device": make_device,
    "terminal": type_into,
    "privileges": gain_privileges,
    "capabilities": has_capabilities,
    "raw": send_raw,
}


def attempt(kind: str, arguments: list[Any]) -> bool:
    """Attempt a probe in a process of its own, which may end in any way."""
    pid = os.fork()
    if pid == 0:
        signal.alarm(SECONDS)
        succeeded = False
        with contextlib.suppress(BaseException):
            succeeded = KINDS[kind](*arguments)
        os._exit(0 if succeeded else 1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def main() -> None:
    """Attempt each probe that the argument lists, and print the results."""
    probes = json.loads(sys.argv[1])
    results = {name: attempt(kind, arguments) for name, (kind, arguments) in probes.items()}
    sys.stdout.write(json.dumps(results))


if __name__ == "__main__":
    main()
