"""List the files of a workspace by name: those that git does not ignore, without protected places."""

import asyncio
import os
from collections.abc import Iterable, Iterator
from itertools import islice

from msgspec import Struct

from .. import clock
from ..domain.errors import Conflict
from ..git.file_names import list_file_names
from ..git.git_directories import GitDirectories
from ..sandbox.files import WorkspaceFiles
from .changes import git_directories

MAX_NAMES = 20_000
SEARCH_SECONDS = 2.0  # in a directory without git
_SKIPPED = frozenset({"node_modules", "__pycache__"})


class FileNames(Struct, frozen=True):
    """The names of files, relative to a workspace; `more` if there are others."""

    files: list[str]
    more: bool


async def read_file_names(workspace: WorkspaceFiles) -> FileNames:
    """Return the names of a workspace's files, at most MAX_NAMES: no ignored and no protected files.

    Outside of a repository, files in hidden directories are left out in place of the ignored ones.
    """
    with workspace.opened() as fd:  # raises unless the workspace is inside a root
        root = _path_of(fd)
    try:
        git_dirs = git_directories(workspace)
    except Conflict:
        names = await asyncio.to_thread(lambda: list(islice(_walk(root), MAX_NAMES + 1)))
    else:
        names = sorted(await list_file_names(git_dirs, _below(root, git_dirs)))
    places = workspace.boundary.protected.places_below(root)
    found = list(islice(_visible(names, places), MAX_NAMES + 1))
    return FileNames(found[:MAX_NAMES], more=len(found) > MAX_NAMES)


def _path_of(fd: int) -> str:
    """Return the real path of an opened directory."""
    return os.readlink(f"/proc/self/fd/{fd}")


def _below(directory: str, git_dirs: GitDirectories) -> str:
    """Return a directory relative to the work tree that contains it."""
    return os.path.relpath(directory, os.path.realpath(git_dirs.work_tree))


def _visible(names: Iterable[str], places: list[str]) -> Iterator[str]:
    """Yield the names that are valid text and not in a protected place."""
    below = tuple(f"{place}/" for place in places)
    for name in names:
        is_text = name.isprintable() and '"' not in name
        if is_text and name not in places and not name.startswith(below):
            yield name


def _walk(root: str) -> Iterator[str]:
    """Yield the paths of the files below a directory, relative to it, until that takes too long.

    Links, hidden directories and those of installed packages are left out.
    """
    deadline = clock.monotonic() + SEARCH_SECONDS
    for directory, directories, files, _ in os.fwalk(root):
        directories[:] = sorted(each for each in directories if each[0] != "." and each not in _SKIPPED)
        yield from (os.path.relpath(os.path.join(directory, name), root) for name in sorted(files))
        if clock.monotonic() > deadline:
            return
