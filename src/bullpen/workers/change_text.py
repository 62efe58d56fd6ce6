"""What has changed in a workspace, as text for an agent."""

import re
from collections.abc import Iterator

from ..git.diff_format import FileDiff
from .changes import WorkspaceChanges

MOST_TEXT = 128 << 10  # characters of patches; of the files behind them only the names are told

_TICKS = re.compile("`{3,}")


def as_text(changes: WorkspaceChanges) -> str:
    """Every file by name, and the patches as far as they fit; empty when nothing has changed."""
    if not changes.files:
        return ""
    shown = list(_that_fit(changes.files))
    patches = "".join(file.patch if file.patch.endswith("\n") else f"{file.patch}\n" for file in shown)
    pieces = [_in_words(changes), _fenced(patches) if patches else "", _not_shown(changes.files, shown)]
    return "\n\n".join(piece for piece in pieces if piece)


def _that_fit(files: list[FileDiff]) -> Iterator[FileDiff]:
    room = MOST_TEXT
    for file in files:
        if file.patch and len(file.patch) <= room:
            room -= len(file.patch)
            yield file


def _in_words(changes: WorkspaceChanges) -> str:
    count = len(changes.files)
    files = "1 file" if count == 1 else f"{count} files"
    note = f"; {changes.note}" if changes.note else ""
    return f"{files}, +{changes.additions} -{changes.deletions}, since {changes.base}{note}"


def _fenced(patches: str) -> str:
    """In a fence that nothing inside can close."""
    longest = max(map(len, _TICKS.findall(patches)), default=2)
    ticks = "`" * (longest + 1)
    return f"{ticks}diff\n{patches}{ticks}"


def _not_shown(files: list[FileDiff], shown: list[FileDiff]) -> str:
    whole = {file.path for file in shown if not file.note}
    lines = [f"- `{file.path}` ({_why(file, file in shown)})" for file in files if file.path not in whole]
    return "\n".join(["Not shown, or not whole:", *lines]) if lines else ""


def _why(file: FileDiff, is_shown: bool) -> str:
    if file.note:
        return f"{file.status}; {file.note}"
    if file.binary:
        return f"{file.status}, binary"
    counts = f"{file.status}, +{file.additions or 0} -{file.deletions or 0}"
    return counts if is_shown or not file.patch else f"{counts}; too long to pass on"
