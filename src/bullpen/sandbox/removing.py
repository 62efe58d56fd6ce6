"""Delete directories that programs of a user or an agent have written."""

import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path


def remove_tree(directory: Path) -> None:
    """Delete a directory, even if parts of it are read-only (as in some caches) or not readable."""
    try:
        shutil.rmtree(directory)
    except PermissionError:
        _make_writable(directory)
        shutil.rmtree(directory)


def _make_writable(directory: Path) -> None:
    """Make a directory and everything below it writable for the owner."""
    with suppress(OSError):
        directory.chmod(stat.S_IRWXU)
    for top, names, _ in os.walk(directory):  # each is made readable before it is read
        for path in (Path(top, name) for name in names):
            if not path.is_symlink():
                with suppress(OSError):
                    path.chmod(stat.S_IRWXU)
