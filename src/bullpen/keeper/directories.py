"""Open and remove directories and files relative to a descriptor, so that no planted symlink is followed."""

from __future__ import annotations

import os
from contextlib import suppress

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def open_directory(parent: int, name: str, fresh: bool = False) -> int:
    """Return a descriptor of the directory, made if it is missing; FileExistsError if it must be `fresh`.

    A directory that was made but cannot be opened is removed, since the next try would find it.
    """
    made = True
    try:
        os.mkdir(name, 0o700, dir_fd=parent)
    except FileExistsError:
        if fresh:
            raise
        made = False
    try:
        return os.open(name, _DIRECTORY, dir_fd=parent)
    except OSError:
        if made:
            os.rmdir(name, dir_fd=parent)
        raise


def remove_tree(name: str, parent: int) -> None:
    """Remove a directory with everything in it, if it exists."""
    try:
        fd = os.open(name, _DIRECTORY, dir_fd=parent)
    except FileNotFoundError:
        return
    except NotADirectoryError:
        remove_file(name, parent)
        return
    try:
        with os.scandir(fd) as entries:
            inside = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        for inner, is_directory in inside:
            if is_directory:
                remove_tree(inner, fd)
            else:
                remove_file(inner, fd)
    finally:
        os.close(fd)
    os.rmdir(name, dir_fd=parent)


def remove_file(name: str, parent: int) -> None:
    """Remove a file from the directory `parent`, if it exists."""
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=parent)
