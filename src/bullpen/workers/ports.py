"""The ports that programs of workers listen on, found by the marker they carry."""

import os
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from ..keeper.marker import find_marked
from ..wire.proc import ListeningSocket, program_name, read_listeners

PROC = Path("/proc")

_MOST_PROCESSES = 2000
_MOST_DESCRIPTORS = 4096  # of one process
_MOST_BYTES = 1 << 20  # of a table: those that listen stand first
_WIDEST_FIRST = ("0.0.0.0", "::", "127.0.0.1", "::1")


class Port(NamedTuple):
    """What a program of a worker listens on."""

    port: int
    address: str
    worker_id: str
    pid: int
    command: str


def find_ports(home_id: str, worker_ids: Collection[str], proc: Path = PROC) -> list[Port]:
    """One for each port and worker, sorted; looks at every process of the machine: not for the loop."""
    listeners = {each.inode: each for name in ("tcp", "tcp6") for each in _listeners(proc / "net" / name)}
    if not listeners:  # also where the kernel has no /proc to look at
        return []
    processes = [
        (pid, worker_id)
        for pid, worker_id, _ in sorted(find_marked(home_id))
        if worker_id in worker_ids and pid != os.getpid()  # a server may be started in a terminal of its own
    ]
    return _each_once(_listening(proc, processes[:_MOST_PROCESSES], listeners))


def _listening(
    proc: Path, processes: Iterable[tuple[int, str]], listeners: dict[int, ListeningSocket]
) -> Iterator[Port]:
    for pid, worker_id in processes:
        found = [listeners[inode] for inode in _sockets(proc / str(pid) / "fd") if inode in listeners]
        command = _command(proc / str(pid)) if found else ""
        for each in found:
            yield Port(each.port, each.address, worker_id, pid, command)


def _each_once(ports: Iterable[Port]) -> list[Port]:
    """A program may listen on several addresses, and share its socket with what it forked."""
    found: dict[tuple[int, str], Port] = {}
    for each in sorted(ports, key=lambda each: (_narrowness(each.address), each.pid)):
        found.setdefault((each.port, each.worker_id), each)
    return [found[key] for key in sorted(found)]


def _narrowness(address: str) -> int:
    return _WIDEST_FIRST.index(address) if address in _WIDEST_FIRST else len(_WIDEST_FIRST)


def _listeners(table: Path) -> list[ListeningSocket]:
    return read_listeners(_read(table).decode(errors="replace"))


def _sockets(descriptors: Path) -> Iterator[int]:
    """The inodes of a process's sockets, as long as it is there and ours to look at."""
    try:
        with os.scandir(descriptors) as entries:
            for entry in islice(entries, _MOST_DESCRIPTORS):
                kind, _, inode = _target(entry).partition(":")
                if kind == "socket":
                    yield int(inode.strip("[]"))
    except OSError:
        return


def _target(entry: os.DirEntry[str]) -> str:
    try:
        return os.readlink(entry.path)
    except OSError:  # closed meanwhile
        return ""


def _command(process: Path) -> str:
    return program_name(_read(process / "cmdline"), _read(process / "comm"))


def _read(file: Path) -> bytes:
    try:
        with open(file, "rb") as opened:
            return opened.read(_MOST_BYTES)
    except OSError:  # it has just ended, or there is no such table
        return b""
