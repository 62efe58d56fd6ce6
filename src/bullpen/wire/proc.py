"""Parse what the kernel reports in /proc about sockets and processes."""

import ipaddress
import sys
from typing import NamedTuple

_LISTENING = "0A"  # TCP_LISTEN
_MAX_NAME_LENGTH = 100


class ListeningSocket(NamedTuple):
    """A TCP socket that accepts connections."""

    inode: int
    address: str
    port: int


def read_listeners(table: str) -> list[ListeningSocket]:
    """Return the listening sockets in a table like /proc/net/tcp or tcp6; malformed lines are skipped."""
    lines = (line.split() for line in table.splitlines()[1:])
    sockets = (_listener(words[1], words[9]) for words in lines if len(words) > 9 and words[3] == _LISTENING)
    return [socket for socket in sockets if socket is not None]


def _listener(local: str, inode: str) -> ListeningSocket | None:
    """Return the socket in a line of the table, or None if the line is malformed."""
    address, _, port = local.partition(":")
    try:
        return ListeningSocket(int(inode), _address(bytes.fromhex(address)), int(port, 16))
    except ValueError:
        return None


def _address(words: bytes) -> str:
    """Return an address that the kernel printed as 32-bit numbers in the byte order of the machine."""
    step = -1 if sys.byteorder == "little" else 1
    found = ipaddress.ip_address(b"".join(words[at : at + 4][::step] for at in range(0, len(words), 4)))
    return str(getattr(found, "ipv4_mapped", None) or found)


def program_name(arguments: bytes, name: bytes) -> str:
    """Return the name of a program from its first argument, else the kernel's name, as one printable line."""
    first = arguments.partition(b"\0")[0].decode(errors="replace").rpartition("/")[2]
    found = first or name.decode(errors="replace").strip()
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in found)[:_MAX_NAME_LENGTH]


def foreground_group(stat: str) -> int | None:
    """Return the foreground process group of a terminal from /proc/<pid>/stat; None without a terminal."""
    words = stat.rpartition(")")[2].split()  # the name before it may contain anything
    group = int(words[5]) if len(words) > 5 else -1
    return group if group > 0 else None
