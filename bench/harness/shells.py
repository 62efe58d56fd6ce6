"""Start programs in the shells under test, and wait until they run."""

import shlex
import sys
from pathlib import Path

from children import flood
from systems import Terminal

FLOOD_COMMAND = [sys.executable, "-I", "-S", str(Path(flood.__file__))]
LINES_COMMAND = [sys.executable, "-I", "-S", str(Path(flood.__file__).with_name("lines.py"))]
# The shell assembles the marker, so that the echo of this line does not contain it.
ECHO_LINE = b"stty raw -echo; printf '@@%s@@\\r\\n' READY; exec cat\r"


def start_flood(terminal: Terminal, kind: str, blocks: int) -> None:
    """Start the flood program, which then waits for the key that starts its output."""
    terminal.type(f"exec {shlex.join([*FLOOD_COMMAND, kind, str(blocks)])}\r".encode())
    _wait_until_ready(terminal)


def start_echo(terminal: Terminal) -> None:
    terminal.type(ECHO_LINE)
    _wait_until_ready(terminal)


def start_lines(terminal: Terminal) -> None:
    terminal.type(f"exec {shlex.join(LINES_COMMAND)}\r".encode())


def _wait_until_ready(terminal: Terminal) -> None:
    seen, ready = b"", flood.READY.strip()
    while ready not in seen:  # it may be in the first screen, since typing does not wait for the screen
        seen += terminal.read()
