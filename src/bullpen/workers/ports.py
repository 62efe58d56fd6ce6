"""Find the TCP ports on which programs of workers listen, by the marker in their environment."""

import os
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from ..keeper.marker import find_marked
from ..wire.proc import ListeningSocket, program_name, read_listeners

PROC = Path("/proc")

_MAX_PROCESSES = 2000
_MAX_DESCRIPTORS = 4096  # of one process
_MAX_TABLE_BYTES = 1 << 20  # the listening sockets come first in a table
_WIDEST_FIRST = ("0.0.0.0", "::", "127.0.0.1", "::1")


class Port(NamedTuple):
    """A port on which a program of a worker listens, with the address and the program."""

    port: int
    address: str
    worker_id: str
    pid: int
    command: str


def find_ports(home_id: str, worker_ids: Collection[str], proc: Path = PROC) -> list[Port]:
    """Return the ports, one entry for each port and worker, sorted.

    It searches all processes of the machine, so call it in a thread.
    """
    listeners = {each.inode: each for name in ("tcp", "tcp6") for each in _listeners(proc / "net" / name)}
    if not listeners:  # also on a system without /proc
        return []
    processes = [
        (pid, worker_id)
        for pid, worker_id, _ in sorted(find_marked(home_id))
        if worker_id in worker_ids
        and pid != os.getpid()  # this server itself may run in a terminal of Bullpen
    ]
    return _one_per_port(_listening(proc, processes[:_MAX_PROCESSES], listeners))


def _listening(
    proc: Path, processes: Iterable[tuple[int, str]], listeners: dict[int, ListeningSocket]
) -> Iterator[Port]:
    """Yield the ports on which these processes listen."""
    for pid, worker_id in processes:
        found = [listeners[inode] for inode in _sockets(proc / str(pid) / "fd") if inode in listeners]
        command = _command(proc / str(pid)) if found else ""
        for each in found:
            yield Port(each.port, each.address, worker_id, pid, command)


def _one_per_port(ports: Iterable[Port]) -> list[Port]:
    """Keep the widest address of each port: a program may listen on several, and share them with forks."""
    found: dict[tuple[int, str], Port] = {}
    for each in sorted(ports, key=lambda each: (_address_rank(each.address), each.pid)):
        found.setdefault((each.port, each.worker_id), each)
    return [found[key] for key in sorted(found)]


def _address_rank(address: str) -> int:
    """Return a sort key by which wide addresses such as 0.0.0.0 come first."""
    return _WIDEST_FIRST.index(address) if address in _WIDEST_FIRST else len(_WIDEST_FIRST)


def _listeners(table: Path) -> list[ListeningSocket]:
    """Return the listening sockets in a table of /proc/net."""
    return read_listeners(_read(table).decode(errors="replace"))


def _sockets(descriptors: Path) -> Iterator[int]:
    """Yield the inodes of a process's sockets, as far as this process may read them."""
    try:
        with os.scandir(descriptors) as entries:
            for entry in islice(entries, _MAX_DESCRIPTORS):
                kind, _, inode = _target(entry).partition(":")
                if kind == "socket":
                    yield int(inode.strip("[]"))
    except OSError:
        return


def _target(entry: os.DirEntry[str]) -> str:
    """Return the target of a descriptor link, or an empty text."""
    try:
        return os.readlink(entry.path)
    except OSError:  # closed meanwhile
        return ""


def _command(process: Path) -> str:
    """Return the name of the program of a process, given its directory in /proc."""
    return program_name(_read(process / "cmdline"), _read(process / "comm"))


def _read(file: Path) -> bytes:
    """Return the content of a file in /proc; empty if it is gone."""
    try:
        with open(file, "rb") as opened:
            return opened.read(_MAX_TABLE_BYTES)
    except OSError:  # the process has just ended, or there is no such table
        return b""
