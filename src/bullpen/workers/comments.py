"""What a person remarks on lines of a diff, as one message to an agent."""

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from ..git.diff_format import FileDiff

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
MOST_QUOTED = 20  # lines

Side = Literal["old", "new"]


class DiffComment(Struct, frozen=True, kw_only=True):
    """A remark on a line, or on some lines in a row, of the old or the new file."""

    path: str
    line: int
    text: str
    end_line: int | None = None
    side: Side = "new"


def as_message(comments: Sequence[DiffComment], files: Iterable[FileDiff], introduction: str = "") -> str:
    """All of them, in the order of files and lines, each with the lines it is about."""
    by_path = {file.path: file for file in files}
    ordered = sorted(comments, key=lambda comment: (comment.path, comment.line))
    opening = introduction.strip() or "Please look at these comments on the changes:"
    return "\n\n".join([opening, *(_one(comment, by_path.get(comment.path)) for comment in ordered)])


def _one(comment: DiffComment, file: FileDiff | None) -> str:
    last = max(comment.end_line or comment.line, comment.line)
    where = f"line {comment.line}" if last == comment.line else f"lines {comment.line} to {last}"
    before = " before the change" if comment.side == "old" else ""
    quoted = [] if file is None else _quoted(file.patch, comment.side, comment.line, last)
    lines = [f"`{comment.path}`, {where}{before}:", *(f"> {line}" for line in quoted), comment.text.strip()]
    return "\n".join(lines)


def _quoted(patch: str, side: Side, first: int, last: int) -> list[str]:
    """The lines of one side, as the patch has them, signs included."""
    found: list[str] = []
    old = new = 0
    for line in patch.split("\n"):
        if match := _HUNK.match(line):
            old, new = int(match[1]), int(match[2])
        elif old or new:
            here, is_shown = (old, line[:1] in " -") if side == "old" else (new, line[:1] in " +")
            if line and is_shown and first <= here <= last:
                found.append(line)
            old += line[:1] in (" ", "-")
            new += line[:1] in (" ", "+")
    return found[:MOST_QUOTED]
