"""Print numbered lines, plain or coloured, as fast as the terminal reads them.

It runs inside the terminals under test (`flood.py KIND BLOCKS`; with 0 blocks it prints until it is ended).
The harness imports it to compute how many bytes must arrive.
"""

import os
import sys
import termios
from collections.abc import Callable
from itertools import repeat

READY = b"@@READY@@\r\n"
LINES_PER_BLOCK = 1024


def plain_line(number: int) -> bytes:
    return b"%08d the quick brown fox jumps over the lazy dog, again\n" % number


def coloured_line(number: int) -> bytes:
    """Return a line like those of a build log: weights, palette colours and true colours."""
    counter = b"\x1b[2m%08d\x1b[0m \x1b[1;32mok\x1b[0m" % number
    words = b"\x1b[38;5;%dmthe quick brown fox\x1b[0m" % (number % 256)
    return counter + b" " + words + b" \x1b[38;2;%d;120;200mjumps\x1b[39m\n" % (number % 200)


LINES: dict[str, Callable[[int], bytes]] = {"plain": plain_line, "coloured": coloured_line}


def block(kind: str) -> bytes:
    return b"".join(LINES[kind](number) for number in range(LINES_PER_BLOCK))


def received_bytes(kind: str) -> int:
    """Return the bytes that a reader gets per block; the tty turns each newline into two bytes."""
    return len(block(kind)) + LINES_PER_BLOCK


def make_quiet(fd: int) -> None:
    """Turn off echo and line editing, so that one key starts the flood; keep the output settings."""
    attributes = termios.tcgetattr(fd)
    attributes[3] &= ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(fd, termios.TCSANOW, attributes)


def write_all(data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(1, rest) :]


def main() -> None:
    kind, blocks = sys.argv[1], int(sys.argv[2])
    data = block(kind)
    make_quiet(0)
    write_all(READY.replace(b"\r\n", b"\n"))
    os.read(0, 1)
    for _ in range(blocks) if blocks else repeat(None):
        write_all(data)
    os.read(0, 1)  # keep running: node-pty drops what it has not read 200 ms after the end of its child


if __name__ == "__main__":
    main()
