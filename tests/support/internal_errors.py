"""Find log lines of a server and its keepers that only a bug causes: tracebacks and internal errors."""

import re
from pathlib import Path

from bullpen.logs import ESCAPED

_SIGNS = re.compile(rf"{ESCAPED}|Traceback \(most recent call last\)|internal error")
_LINES_AFTER = 150  # lines shown from the match on


def find_internal_error(output: str, home: Path, expected: tuple[str, ...] = ()) -> str | None:
    """Return the log lines of the first internal error without an expected text, or None."""
    logged = [output, *(path.read_text(errors="replace") for path in (home / "keeper").glob("*.log"))]
    for text in logged:
        lines = text.splitlines()
        for number, line in enumerate(lines):
            excerpt = "\n".join(lines[max(0, number - 1) : number + _LINES_AFTER])
            if _SIGNS.search(line) and not any(each in excerpt for each in expected):
                return excerpt
    return None
