"""Format the changes of a workspace as text for an agent."""

import re
from collections.abc import Iterator

from ..git.diff_format import FileDiff
from .changes import WorkspaceChanges

MAX_PATCHES_LENGTH = 128 << 10  # characters; files beyond it are only named

_TICKS = re.compile("`{3,}")


def format_changes(changes: WorkspaceChanges) -> str:
    """Return all file names and the patches that fit; an empty text if nothing has changed."""
    if not changes.files:
        return ""
    shown = list(_fitting_files(changes.files))
    patches = "".join(file.patch if file.patch.endswith("\n") else f"{file.patch}\n" for file in shown)
    pieces = [_summary(changes), _fenced(patches) if patches else "", _incomplete_files(changes.files, shown)]
    return "\n\n".join(piece for piece in pieces if piece)


def _fitting_files(files: list[FileDiff]) -> Iterator[FileDiff]:
    """Yield the files whose patches fit into the text together."""
    room = MAX_PATCHES_LENGTH
    for file in files:
        if file.patch and len(file.patch) <= room:
            room -= len(file.patch)
            yield file


def _summary(changes: WorkspaceChanges) -> str:
    """Return one line with the number of files, the lines changed and the base."""
    count = len(changes.files)
    files = "1 file" if count == 1 else f"{count} files"
    note = f"; {changes.note}" if changes.note else ""
    return f"{files}, +{changes.additions} -{changes.deletions}, since {changes.base}{note}"


def _fenced(patches: str) -> str:
    """Return the patches in a Markdown fence that is longer than any fence inside."""
    longest = max(map(len, _TICKS.findall(patches)), default=2)
    ticks = "`" * (longest + 1)
    return f"{ticks}diff\n{patches}{ticks}"


def _incomplete_files(files: list[FileDiff], shown: list[FileDiff]) -> str:
    """Return a list of the files whose patch is missing or cut, with the reasons."""
    whole = {file.path for file in shown if not file.note}
    lines = [f"- `{file.path}` ({_reason(file, file in shown)})" for file in files if file.path not in whole]
    return "\n".join(["Not shown, or shown in part:", *lines]) if lines else ""


def _reason(file: FileDiff, is_shown: bool) -> str:
    """Return why the patch of a file is missing or cut."""
    if file.note:
        return f"{file.status}; {file.note}"
    if file.binary:
        return f"{file.status}, binary"
    counts = f"{file.status}, +{file.additions or 0} -{file.deletions or 0}"
    return counts if is_shown or not file.patch else f"{counts}; too long to pass on"
