"""Finds in the logs of a server and its keepers what only a mistake in the program leaves there."""

import re
from pathlib import Path

from bullpen.logs import ESCAPED

_SIGNS = re.compile(rf"{ESCAPED}|Traceback \(most recent call last\)|internal error")
_AROUND = 150  # lines shown after the first sign


def find_mistake(output: str, home: Path, expected: tuple[str, ...] = ()) -> str | None:
    """Return the first mistake that was logged and contains none of the expected texts, or None."""
    logged = [output, *(path.read_text(errors="replace") for path in (home / "keeper").glob("*.log"))]
    for text in logged:
        lines = text.splitlines()
        for number, line in enumerate(lines):
            about = "\n".join(lines[max(0, number - 1) : number + _AROUND])
            if _SIGNS.search(line) and not any(each in about for each in expected):
                return about
    return None
