"""Read all changes in a workspace: those of tracked files, and new files that git does not track."""

import asyncio
import os
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ..domain.errors import BullpenError, Conflict
from ..git.diff import TrackedChanges, read_diff
from ..git.diff_format import MAX_PATCH_BYTES, FileDiff, new_file, text
from ..git.discovery import find_git_directories
from ..git.git_directories import GitDirectories
from ..sandbox.files import WorkspaceFiles

MAX_NEW_SHOWN = 200  # new files with their content
MAX_NEW_LISTED = 2000  # new files at all
TOO_LARGE = "too large to show"
NOT_SHOWN = "not shown, because there are many new files"


class WorkspaceChanges(Struct, frozen=True, kw_only=True, rename="camel"):
    """The differences between a work tree and its base commit."""

    base: str
    branch: str | None
    files: list[FileDiff]
    additions: int
    deletions: int
    note: str | None = None


def git_directories(workspace: WorkspaceFiles) -> GitDirectories:
    """Return the work tree and git directories around a workspace.

    Raise Conflict if no repository inside the workspace roots contains it.
    """
    git_dirs = find_git_directories(Path(workspace.root))
    if git_dirs is None or not workspace.boundary.contains(Path(os.path.realpath(git_dirs.work_tree))):
        raise Conflict(f"{workspace.root} is not in a git repository, so there is nothing to compare it with")
    return git_dirs


async def read_changes(workspace: WorkspaceFiles, base: str | None = None) -> WorkspaceChanges:
    """Compare the work tree around a workspace with its base; protected places are left out."""
    git_dirs = git_directories(workspace)
    work_tree = workspace.at(str(git_dirs.work_tree))
    tracked = await read_diff(git_dirs, base)
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
    listed = tracked.untracked[:MAX_NEW_LISTED]
    names = [name for name in listed if not work_tree.is_protected(name)]
    new = [_shown(_new_file(work_tree, name, count < MAX_NEW_SHOWN)) for count, name in enumerate(names)]
    return sorted(known + new, key=lambda file: file.path), len(tracked.untracked) - len(listed)


def _is_protected(work_tree: WorkspaceFiles, file: FileDiff) -> bool:
    """Return whether the file, or the one it was renamed from, is protected."""
    return any(work_tree.is_protected(path) for path in (file.path, file.old_path) if path is not None)


def _shown(file: FileDiff) -> FileDiff:
    """Return the file with its names as text: what is not UTF-8 in them is replaced."""
    old_path = None if file.old_path is None else text(os.fsencode(file.old_path))
    return replace(file, path=text(os.fsencode(file.path)), old_path=old_path)


def _new_file(work_tree: WorkspaceFiles, name: str, shown: bool) -> FileDiff:
    """Return a new file as a diff shows it; without its content if that cannot be read."""
    path = os.fsencode(name)
    if not shown:
        return new_file(path, None, NOT_SHOWN)
    try:
        if work_tree.size_of(name) > MAX_PATCH_BYTES:
            return new_file(path, None, TOO_LARGE)
        return new_file(path, work_tree.read_bytes(name))
    except BullpenError as error:
        return new_file(path, None, text(str(error).encode("utf-8", "replace")))
