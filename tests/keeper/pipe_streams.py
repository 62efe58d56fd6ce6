"""An output stream that reads from a pipe of the test."""

import os
from pathlib import Path

from bullpen.keeper.loop import EventLoop
from bullpen.keeper.spool import SpoolWriter
from bullpen.keeper.stream import OutputStream


def pipe_stream(directory: Path, loop: EventLoop, *, on_terminal: bool = True) -> tuple[OutputStream, int]:
    """Return a stream of a terminal or a pipe, and the descriptor to which the test writes its output."""
    out, end = os.pipe()
    directory.mkdir()
    spool = SpoolWriter(os.open(directory, os.O_RDONLY))
    key = (directory.name, 1, "out")
    stream = OutputStream(
        key, out, spool, loop=loop, grown=set(), on_end=lambda: None, window=None, on_terminal=on_terminal
    )
    return stream, end
