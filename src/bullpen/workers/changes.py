"""Everything that has changed in a workspace: what git knows, and the new files it does not."""

import asyncio
import os
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ..domain.errors import BullpenError, Conflict
from ..git.diff import TrackedChanges, read_diff
from ..git.diff_format import MOST_PATCH, FileDiff, new_file, text
from ..git.discovery import find_place
from ..git.places import GitDirectories
from ..sandbox.files import WorkspaceFiles

MOST_NEW = 200  # new files that are shown with their content
MOST_LISTED = 2000  # and that are listed at all
TOO_LARGE = "too large to show"
NOT_SHOWN = "one of very many new files; not shown"


class WorkspaceChanges(Struct, frozen=True, kw_only=True, rename="camel"):
    """A work tree against its base."""

    base: str
    branch: str | None
    files: list[FileDiff]
    additions: int
    deletions: int
    note: str | None = None


def place_of(workspace: WorkspaceFiles) -> GitDirectories:
    """Return where git works for a workspace; Conflict if no repository inside the roots contains it."""
    place = find_place(Path(workspace.root))
    if place is None or not workspace.boundary.contains(Path(os.path.realpath(place.work_tree))):
        raise Conflict(f"{workspace.root} is not in a git repository, so there is nothing to compare it with")
    return place


async def read_changes(workspace: WorkspaceFiles, base: str | None = None) -> WorkspaceChanges:
    """Compare the work tree around a workspace with its base; protected places are left out."""
    place = place_of(workspace)
    work_tree = workspace.at(str(place.work_tree))
    tracked = await read_diff(place, base)
    files, more = await asyncio.to_thread(_visible_files, work_tree, tracked)
    return WorkspaceChanges(
        base=tracked.base,
        branch=tracked.branch,
        files=files,
        additions=sum(file.additions or 0 for file in files),
        deletions=sum(file.deletions or 0 for file in files),
        note=f"{more} more new files are not listed" if more > 0 else tracked.note,
    )


def _visible_files(work_tree: WorkspaceFiles, tracked: TrackedChanges) -> tuple[list[FileDiff], int]:
    """Return the changed files by path, and how many new ones are left out because there are too many."""
    known = [_shown(file) for file in tracked.files if not _is_protected(work_tree, file)]
    listed = tracked.untracked[:MOST_LISTED]
    names = [name for name in listed if not work_tree.is_protected(name)]
    new = [_shown(_new_file(work_tree, name, count < MOST_NEW)) for count, name in enumerate(names)]
    return sorted(known + new, key=lambda file: file.path), len(tracked.untracked) - len(listed)


def _is_protected(work_tree: WorkspaceFiles, file: FileDiff) -> bool:
    return any(work_tree.is_protected(path) for path in (file.path, file.old_path) if path is not None)


def _shown(file: FileDiff) -> FileDiff:
    """Return the file with its names as text: what is not UTF-8 in them is replaced."""
    old_path = None if file.old_path is None else text(os.fsencode(file.old_path))
    return replace(file, path=text(os.fsencode(file.path)), old_path=old_path)


def _new_file(work_tree: WorkspaceFiles, name: str, shown: bool) -> FileDiff:
    """A file that vanishes, cannot be read or is no file is listed all the same."""
    path = os.fsencode(name)
    if not shown:
        return new_file(path, None, NOT_SHOWN)
    try:
        if work_tree.size_of(name) > MOST_PATCH:
            return new_file(path, None, TOO_LARGE)
        return new_file(path, work_tree.read_bytes(name))
    except BullpenError as error:
        return new_file(path, None, text(str(error).encode("utf-8", "replace")))
