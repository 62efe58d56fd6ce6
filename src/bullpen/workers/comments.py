"""Format a user's comments on lines of a diff as one message to an agent."""

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from ..git.diff_format import FileDiff

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
MAX_QUOTED_LINES = 20

Side = Literal["old", "new"]


class DiffComment(Struct, frozen=True, kw_only=True):
    """A comment on one line or a range of lines, of the old or the new file."""

    path: str
    line: int
    text: str
    end_line: int | None = None
    side: Side = "new"


def format_comments(
    comments: Sequence[DiffComment], files: Iterable[FileDiff], introduction: str = ""
) -> str:
    """Return a message with all comments by file and line, each with the lines that it is about."""
    by_path = {file.path: file for file in files}
    ordered = sorted(comments, key=lambda comment: (comment.path, comment.line))
    opening = introduction.strip() or "Please look at these comments on the changes:"
    return "\n\n".join([opening, *(_format_one(comment, by_path.get(comment.path)) for comment in ordered)])


def _format_one(comment: DiffComment, file: FileDiff | None) -> str:
    """Return a comment with its place and the quoted lines."""
    last = max(comment.end_line or comment.line, comment.line)
    where = f"line {comment.line}" if last == comment.line else f"lines {comment.line} to {last}"
    before = " before the change" if comment.side == "old" else ""
    quoted = [] if file is None else _quoted(file.patch, comment.side, comment.line, last)
    lines = [f"`{comment.path}`, {where}{before}:", *(f"> {line}" for line in quoted), comment.text.strip()]
    return "\n".join(lines)


def _quoted(patch: str, side: Side, first: int, last: int) -> list[str]:
    """Return the lines of one side between two line numbers, with their signs in the patch."""
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
    return found[:MAX_QUOTED_LINES]
