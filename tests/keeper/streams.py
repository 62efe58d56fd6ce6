"""A stream whose words come from a pipe that the test holds."""

import os
from pathlib import Path

from bullpen.keeper.loop import EventLoop
from bullpen.keeper.spool import SpoolWriter
from bullpen.keeper.stream import OutputStream


def pipe_stream(directory: Path, loop: EventLoop, *, on_terminal: bool = True) -> tuple[OutputStream, int]:
    """One that may take itself for a terminal's, and where its words come from."""
    out, end = os.pipe()
    directory.mkdir()
    spool = SpoolWriter(os.open(directory, os.O_RDONLY))
    key = (directory.name, 1, "out")
    stream = OutputStream(
        key, out, spool, loop=loop, grown=set(), on_end=lambda: None, window=None, on_terminal=on_terminal
    )
    return stream, end
