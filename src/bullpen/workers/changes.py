"""Everything that has changed in a workspace: what git knows, and the new files it does not."""

import asyncio
import os
from pathlib import Path

from msgspec import Struct

from ..domain.errors import BullpenError, Conflict
from ..git.diff import read_diff
from ..git.diff_format import MOST_PATCH, FileDiff, new_file, text
from ..git.discovery import find_place
from ..git.places import Place
from ..sandbox.files import read_bytes, size_of

MOST_NEW = 200  # new files that are shown with their content
MOST_LISTED = 2000  # and that are listed at all
TOO_LARGE = "too large to show"
NOT_SHOWN = "one of very many new files; not shown"


class Changes(Struct, frozen=True, kw_only=True, rename="camel"):
    """A work tree against its base."""

    base: str
    branch: str | None
    files: list[FileDiff]
    additions: int
    deletions: int
    note: str | None = None


def place_of(workspace: str) -> Place:
    """Where git works for a workspace; Conflict when it is in no repository."""
    place = find_place(Path(workspace))
    if place is None:
        raise Conflict(f"{workspace} is not in a git repository, so there is nothing to compare it with")
    return place


async def read_changes(place: Place, base: str | None = None) -> Changes:
    tracked = await read_diff(place, base)
    new = await asyncio.to_thread(_new_files, str(place.work_tree), tracked.untracked)
    files = sorted(tracked.files + new, key=lambda file: file.path)
    left_out = len(tracked.untracked) - len(new)
    return Changes(
        base=tracked.base,
        branch=tracked.branch,
        files=files,
        additions=sum(file.additions or 0 for file in files),
        deletions=sum(file.deletions or 0 for file in files),
        note=f"{left_out} more new files are not listed" if left_out > 0 else tracked.note,
    )


def _new_files(root: str, paths: list[str]) -> list[FileDiff]:
    return [_new_file(root, path, count < MOST_NEW) for count, path in enumerate(paths[:MOST_LISTED])]


def _new_file(root: str, name: str, shown: bool) -> FileDiff:
    """A file that vanishes, cannot be read or is no file is listed all the same."""
    path = os.fsencode(name)
    if not shown:
        return new_file(path, None, NOT_SHOWN)
    try:
        if size_of(root, name) > MOST_PATCH:
            return new_file(path, None, TOO_LARGE)
        return new_file(path, read_bytes(root, name))
    except BullpenError as error:
        return new_file(path, None, text(str(error).encode("utf-8", "replace")))
