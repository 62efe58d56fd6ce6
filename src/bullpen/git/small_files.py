"""Read small files of a git directory, in whose place an agent may have put anything."""

import os
import stat
from pathlib import Path

MAX_POINTER_BYTES = 8192  # of a file that names a directory


def read_text(file: Path) -> str:
    """Return the start of a small file without the white space around it; empty if it cannot be read.

    Only a regular file is read: the server must not wait for the writer of a pipe.
    """
    try:
        with open(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as opened:
            is_regular = stat.S_ISREG(os.fstat(opened.fileno()).st_mode)
            content = opened.read(MAX_POINTER_BYTES) if is_regular else b""
    except (OSError, ValueError):
        return ""
    return content.decode("utf-8", "surrogateescape").strip()
